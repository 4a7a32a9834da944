// event_words.h: what kinds of events, types of payloads and places in the source are called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/content.h"

namespace iket::cli {

// "range begin"; "kind 99" of a later version.
std::string KindText(capture::EventKind kind);
// "u32"; "" of none, "type 99" of a later version.
std::string PayloadText(capture::PayloadType type);
// "gemm.cu:120" of line 120 of "src/gemm.cu", printable; "" of line 0, which is not known.
std::string PlaceText(std::string_view file, uint32_t line);

}  // namespace iket::cli
