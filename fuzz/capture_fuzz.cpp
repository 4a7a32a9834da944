// The capture reader over any bytes. Whatever comes in, what goes out must add up.
// No blind change gets past a checksum; mutate_capture.h does.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "capture/reader.h"
#include "mutate_capture.h"
#include "ring/record.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
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
  Read({data, size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateCapture(data, size, max_size, seed);
}
