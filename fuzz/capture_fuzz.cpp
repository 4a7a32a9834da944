// The capture reader over any bytes. Whatever comes in, what goes out must add up.
//
// Bytes that begin like a capture are one. From other bytes a capture with right checksums is made,
// since no mutation gets past a checksum: chunk by chunk a letter for the kind, a digit for the
// codec, two bytes of length, and that many of payload.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "capture/reader.h"
#include "ring/record.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

template <typename T>
void Append(std::vector<uint8_t>& file, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  file.insert(file.end(), bytes, bytes + sizeof(value));
}

std::vector<uint8_t> Sealed(std::span<const uint8_t> recipe) {
  constexpr std::array<const char*, 12> kKinds = {"STRS", "SESS", "DEVC", "IMAG", "KERN", "DECL",
                                                  "CTXT", "LNCH", "RING", "LOSS", "NOTE", "DONE"};
  std::vector<uint8_t> file = {'i', 'k', 'e', 't', 'c', 'a', 'p', 0};
  for (uint32_t word : {1u, 32u, 0u, 0u, 0u}) Append(file, word);
  Append(file, iket::Crc32c(file.data(), file.size()));
  for (uint32_t sequence = 0; recipe.size() >= 4; ++sequence) {
    const char* kind = kKinds[recipe[0] % kKinds.size()];
    const uint16_t codec = recipe[1] % 2;
    const size_t length =
        std::min<size_t>(recipe[2] | static_cast<size_t>(recipe[3]) << 8, recipe.size() - 4);
    const std::span<const uint8_t> payload = recipe.subspan(4, length);
    recipe = recipe.subspan(4 + length);
    // A zlib payload says its raw length in its first four bytes.
    uint32_t raw_bytes = 0;
    const bool zlib = codec == 1 && length >= sizeof(raw_bytes);
    if (zlib) std::memcpy(&raw_bytes, payload.data(), sizeof(raw_bytes));
    const std::span<const uint8_t> stored = zlib ? payload.subspan(sizeof(raw_bytes)) : payload;
    const size_t at = file.size();
    file.insert(file.end(), kind, kind + 4);
    Append(file, uint16_t{1});
    Append(file, codec);
    Append(file, uint64_t{stored.size()});
    Append(file, zlib ? uint64_t{raw_bytes} : uint64_t{stored.size()});
    Append(file, uint64_t{sequence});
    Append(file, iket::Crc32c(stored.data(), stored.size()));
    Append(file, iket::Crc32c(file.data() + at, file.size() - at));
    file.insert(file.end(), stored.begin(), stored.end());
    file.resize((file.size() + 7) / 8 * 8);
  }
  return file;
}

void Read(std::span<const uint8_t> file) {
  const auto reader = iket::capture::Reader::FromBytes(std::as_bytes(file), "fuzz");
  if (!reader) return;
  const auto& capture = reader->capture();
  Check(capture.damage.bytes_skipped <= file.size());
  Check(capture.damage.chunks_unknown + capture.damage.chunks_malformed <=
        capture.damage.chunks_whole);
  for (size_t i = 1; i < capture.kernels.size(); ++i) {
    Check(capture.kernels[i - 1].index < capture.kernels[i].index);
  }
  for (const auto& kernel : capture.kernels) Check(capture.FindKernel(kernel.index) == &kernel);
  uint32_t words = 0;  // of every record, so that a sanitizer sees each of them read
  const auto walk = reader->ForEachRingBlock([&](const iket::capture::RingBlock& block) {
    for (const auto& row : block.rows) {
      Check(row.first + row.records.size_bytes() <= row.written);
      for (const auto& record : row.records) {
        words ^= record.clock ^ record.tag ^ record.low ^ record.high;
      }
    }
    return true;
  });
  Check(walk.blocks + walk.blocks_malformed == reader->ring_block_count());
  [[maybe_unused]] volatile uint32_t sink = words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (size > 0 && data[0] == 'i') {
    Read(bytes);
  } else {
    Read(Sealed(bytes));
  }
  return 0;
}
