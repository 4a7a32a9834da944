// trace_json_check.h: is a stream of bytes JSON in the schema of NVIDIA's run-iket?
//
// Every key of its files is there with a value of its type, rows name rows that exist, ranges and
// lifetimes end after they begin, and a range has two events, one that was never closed, in
// meta.iket, one. Further keys are passed over.
// Private to check.cpp and its tests.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "export/check.h"

namespace iket::exporter {

struct TraceJsonContents {
  Counts counts;
  bool simulated = false;  // it says to be of a software device
};

// `next` gives the document block by block, then nothing. Adds to `faults`; returns what was found.
TraceJsonContents CheckTraceJson(
    const std::function<std::optional<std::span<const std::byte>>()>& next, Faults& faults);

}  // namespace iket::exporter
