// event_kind.h: what an event is, by the numbers that declarations (docs/placeholder.md) and
// captures (docs/format.md) have for it.
#pragma once

#include <cstdint>

namespace iket::ring {

enum class EventKind : uint8_t {
  kMark = 0,
  kPush = 1,
  kPop = 2,
  kRangeBegin = 3,
  kRangeEnd = 4,
  kTokenBegin = 5,  // its clock is the token
  kTokenEnd = 6,    // the record's last word is the token, whatever the payload
  kFlowOut = 7,     // the payload is the id of what is handed on
  kFlowIn = 8,      // and here of what has come
};
inline constexpr uint8_t kLastEventKind = 8;

}  // namespace iket::ring
