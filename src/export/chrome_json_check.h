// chrome_json_check.h: is a stream of bytes JSON in the Trace Event Format?
//
// Of ours and of other tools: each event has a phase of the format, a process and a thread, and a
// time where its phase needs one; complete events of a thread nest; each arrow has one beginning
// and one end. Of ours also: the origin of time is told, and every thread with events has a name.
// Private to check.cpp and its tests. Memory: 32 bytes a complete event.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "export/check.h"

namespace iket::exporter {

// True if the first key of a JSON object (behind its brace) is one of this format.
bool LooksLikeChromeJson(std::span<const std::byte> untrusted);

struct ChromeJsonContents {
  Counts counts;
  bool simulated = false;
};

// `next` gives the document block by block, then nothing. Adds to `faults`.
ChromeJsonContents CheckChromeJson(
    const std::function<std::optional<std::span<const std::byte>>()>& next, Faults& faults);

}  // namespace iket::exporter
