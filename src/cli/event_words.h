// event_words.h: what kinds of events and types of payloads are called.
#pragma once

#include <cstdint>
#include <string>

#include "capture/content.h"

namespace iket::cli {

// "range begin"; "kind 99" of a later version.
std::string KindText(capture::EventKind kind);
// "u32"; "" of none, "type 99" of a later version.
std::string PayloadText(capture::PayloadType type);

}  // namespace iket::cli
