// checksum.h: the two hashes that our contracts name.
//
// Crc32c guards chunks of a capture (docs/format.md); Fnv1a32 makes ids from names
// (docs/placeholder.md). Both are plain table or byte loops without dependencies, since the library
// that lives in somebody else's process uses them too. Cost of Crc32c: 28 GB/s with SSE 4.2 on one
// core of a machine where a single lane takes 10 (bench/checksum_bench.cpp); below 3 KiB as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace iket {

// CRC-32C (Castagnoli, reflected, as in iSCSI and ext4). Continue a running sum by passing it.
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);

// FNV-1a, 32 bits. Continue a running hash by passing it.
constexpr uint32_t kFnv1a32Basis = 0x811c9dc5u;
constexpr uint32_t Fnv1a32(std::string_view text, uint32_t hash = kFnv1a32Basis) {
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193u;
  return hash;
}

}  // namespace iket
