// scan.h: finds the chunks of an untrusted capture, stepping over damage as section 4 of
// docs/format.md says. Checks checksums, decodes nothing. Private to the room.
//
// Cost: one CRC-32C pass over the file, and at most kWastedPasses more when somebody made the file
// so that checks fail; about 40 bytes of memory a chunk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/progress.h"
#include "capture/reader.h"
#include "capture/wire.h"

namespace iket::capture {

// A search after damage gives up when checks in vain have cost this many times the file's size;
// without a bound a file of nested headers would cost its size squared.
inline constexpr uint64_t kWastedPasses = 8;

// A chunk whose header and payload have the right checksums.
struct ChunkRef {
  wire::ChunkHeader header;
  UntrustedBytes stored;
};

struct Scan {
  // By their sequence numbers, each once.
  std::vector<ChunkRef> chunks;
  // chunks_whole, chunks_damaged, chunks_missing, bytes_skipped, file_header_damaged are set.
  Damage damage;
};

// Error (kBadInput): not a capture, or a version or required flag that is not known. `name` is for
// messages; `progress` is told the position in the file at each chunk.
Result<Scan> ScanChunks(UntrustedBytes file, const std::string& name,
                        const Progress& progress = {});

}  // namespace iket::capture
