// page.h: writes a model as one HTML file that shows it, offline (docs/timeline.md).
//
// The file is the page of viewer/page_parts.h with data: a head (JSON: names, launches, clocks,
// what was lost) and blocks of columns (page_block.h), each deflated, with a checksum, and in
// base64 in an element that no browser runs. So whatever a kernel or a mark is called, nothing of
// it can end an element. `iket check` reads all of it (page_check.h).
//
// Every warp, range and mark is there, one by one or, of a page that would be too large or is to
// show a part, in a summary whose counts are exact (page_detail.h, page_summary.h). Memory is that
// of one block, and 4 bytes an event where dependencies are declared. Cost:
// docs/benchmarks/viewer.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "export/sink.h"
#include "trace/excerpt.h"
#include "trace/model.h"

namespace iket::exporter {

// Slices that a page shows one by one if nobody says how many: a second until it is ready.
inline constexpr uint64_t kPageSlices = 10'000'000;

struct PageOptions {
  uint64_t most_slices = kPageSlices;
  // What is shown one by one, and all else in the summary; null: all, or what comes first.
  const trace::ExcerptOf* detail = nullptr;
  // For the page to say how one gets more: the capture as a word of a shell, or what else follows
  // `iket export` then.
  std::string capture = "CAPTURE";
  // Is told, in a sentence, that the page has a summary.
  std::function<void(const std::string&)> note = {};
  Progress progress = {};
};

// Fails when the sink fails or memory is short. The bytes are a function of the model and options.
Result<void> WritePage(const trace::Model& model, const Sink& sink,
                       const PageOptions& options = {});

}  // namespace iket::exporter
