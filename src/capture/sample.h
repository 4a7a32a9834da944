// sample.h: contents for the tests of this room: one fixed, and as many random ones as wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "capture/reader.h"
#include "capture/writer.h"

namespace iket::capture {

// One ring whose records the test owns.
struct SampleRing {
  uint32_t ring = 0;
  uint64_t written = 0;
  uint64_t lag_bytes = 0;
  std::vector<ring::Record> records;  // oldest first
  size_t older = 0;                   // how many of them are handed over as the older part
  ring::RingHeader header{};
};

struct SampleMoment {
  RingMoment moment;
  std::vector<SampleRing> rings;
};

// What a test writes, and what it must get back: `facts` as a reader gives them.
struct Sample {
  Capture facts;
  std::vector<SampleMoment> moments;
};

// Small, every kind of chunk, every field different from zero.
Sample FixedSample();
Sample RandomSample(std::mt19937_64& random);

// Appends everything, without Finish.
void WriteSample(const Sample& sample, Writer& writer);

// A whole file.
std::vector<std::byte> SampleFile(const Sample& sample, WriterOptions options = {});

// The pieces of rings in `reader` put together again: per moment, per ring, in the order in which
// they appear. Fails the running test when pieces of a ring do not join.
std::vector<SampleMoment> ReadMoments(const Reader& reader);

// Fails the running test where `read` is not `sample`.
void ExpectSame(const Sample& sample, const Reader& read);

}  // namespace iket::capture
