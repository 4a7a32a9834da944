#include "base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace iket {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t UpdateTable(const uint8_t* p, size_t size, uint32_t crc) {
  for (; size > 0; --size) crc = (crc >> 8) ^ kTable[(crc ^ *p++) & 0xff];
  return crc;
}

#if defined(__x86_64__)
// The instruction takes three cycles, and one can begin in each: three lanes of the data are summed
// side by side and joined.
constexpr size_t kLane = 1024;

// What a sum becomes when kLane zero bytes follow, by its bytes: the operator is linear.
constexpr std::array<std::array<uint32_t, 256>, 4> MakeBehindLane() {
  std::array<uint32_t, 32> of_bit{};
  for (size_t bit = 0; bit < of_bit.size(); ++bit) {
    uint32_t value = uint32_t{1} << bit;
    for (size_t i = 0; i < kLane; ++i) value = (value >> 8) ^ kTable[value & 0xff];
    of_bit[bit] = value;
  }
  std::array<std::array<uint32_t, 256>, 4> table{};
  for (size_t byte = 0; byte < 4; ++byte) {
    for (size_t value = 0; value < 256; ++value) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) table[byte][value] ^= of_bit[8 * byte + bit];
      }
    }
  }
  return table;
}
constexpr std::array<std::array<uint32_t, 256>, 4> kBehindLane = MakeBehindLane();

constexpr uint64_t BehindLane(uint64_t crc) {
  return kBehindLane[0][crc & 0xff] ^ kBehindLane[1][crc >> 8 & 0xff] ^
         kBehindLane[2][crc >> 16 & 0xff] ^ kBehindLane[3][crc >> 24 & 0xff];
}

uint64_t WordAt(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t UpdateHardware(const uint8_t* p, size_t size,
                                                          uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 3 * kLane; size -= 3 * kLane, p += 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      wide = _mm_crc32_u64(wide, WordAt(p + i));
      second = _mm_crc32_u64(second, WordAt(p + kLane + i));
      third = _mm_crc32_u64(third, WordAt(p + 2 * kLane + i));
    }
    wide = BehindLane(BehindLane(wide) ^ second) ^ third;
  }
  for (; size >= 8; size -= 8, p += 8) wide = _mm_crc32_u64(wide, WordAt(p));
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; --size) crc = _mm_crc32_u8(crc, *p++);
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(const void* data, size_t size, uint32_t crc) {
  const auto* p = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~UpdateHardware(p, size, ~crc);
#endif
  return ~UpdateTable(p, size, ~crc);
}

}  // namespace iket
