// The capture reader over any bytes. Whatever comes in, what goes out must add up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "capture/reader.h"
#include "ring/record.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using iket::capture::Reader;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto reader = Reader::FromBytes(bytes, "fuzz");
  if (!reader) return 0;
  const auto& capture = reader->capture();
  Check(capture.damage.bytes_skipped <= size);
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
  return 0;
}
