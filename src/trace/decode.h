// decode.h: from a capture to the columnar model.
//
// Nothing in a capture is trusted: any bytes give a model, and what did not fit is in its counters.
// The one error is a capture with more records than rows have numbers (2^32, 64 GiB).
//
// Cost: see docs/benchmarks/postprocess.md; memory is the ring records once, then 20 bytes an
// event, plus the model (24 bytes an event, 44 a range). All of it is in columns, so it may be
// larger than the machine's (base/column.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/progress.h"
#include "capture/reader.h"
#include "trace/model.h"
#include "trace/ring_stream.h"

namespace iket::trace {

// Takes the rings of a capture as they come. Once: Add any number of times, then Finish.
class Decoder {
 public:
  // `facts` must outlive the decoder.
  explicit Decoder(const capture::Capture& facts) : facts_(facts) {}

  // Once, before anything is added; see RingCollector.
  void Expect(const std::map<std::pair<uint32_t, uint32_t>, uint64_t>& counts) {
    rings_.Expect(counts);
  }
  void Add(const capture::RingBlock& block) {
    rings_.Add(block);
    read_host_ns_ = std::max(read_host_ns_, block.moment.begin_ns);
  }
  Result<Model> Finish(const Progress& progress = {});

 private:
  const capture::Capture& facts_;
  RingCollector rings_;
  int64_t read_host_ns_ = 0;
};

// All of it: reads the rings of the capture, decodes, aligns clocks, pairs ranges.
Result<Model> Decode(const capture::Reader& reader, const Progress& progress = {});

}  // namespace iket::trace
