// decompress.h: the two compressions that nvcc uses inside fatbins.
//
// Both allocate exactly `size` bytes and succeed only if the data fills them exactly. Data that
// could not, costs no more than what is in it. The caller bounds `size` (fatbin.h does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace iket::cubin {

// One or more zstd frames (RFC 8878).
Result<std::vector<std::byte>> DecompressZstd(UntrustedBytes compressed, uint64_t size);
// One raw LZ4 block, without the frame format around it.
Result<std::vector<std::byte>> DecompressLz4(UntrustedBytes compressed, uint64_t size);

}  // namespace iket::cubin
