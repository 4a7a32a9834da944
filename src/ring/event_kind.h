// event_kind.h: what an event is, and what else is said of it, by the numbers that declarations
// (docs/placeholder.md) and captures (docs/format.md) have for it.
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
  kSync = 9,        // the payload is %globaltimer, low word, read just before the clock
  // In captures alone, of another tool's token: opens a range, or closes the one of its name.
  kTokenEither = 11,
};
inline constexpr uint8_t kEdgeKind = 10;         // of a declaration that is no event's
inline constexpr uint8_t kLastDeclaredKind = 9;  // of those that a cubin's declaration may have

// What a declaration says beyond its name: attributes, each with a number and a text.
enum class AttributeKind : uint8_t {
  kValueName = 1,  // what the payload is called
  kValue = 2,      // one more value, of the payload type that the number is, and what it is called
  kCategory = 3,
  kColour = 4,  // the text is four bytes, 0x00RRGGBB
  kLane = 5,    // a row of its own below the warp
  kGroup = 6,   // a row of the CTA: the thread speaks for several warps
  kTarget = 7,  // of an edge: where it leads
  kLabel = 8,
  kVia = 9,
  kDag = 10,
  kForeignEvent = 11,  // the text is four bytes: the id in the metadata of NVIDIA's IKET
  kForeignRange = 12,  // the text is four bytes: the range's id in that metadata
};
inline constexpr uint32_t kMostValues = 4;  // of one event

}  // namespace iket::ring
