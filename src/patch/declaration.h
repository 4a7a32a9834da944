// declaration.h: what the marks of an image are called.
//
// Every mark leaves an array `iket_decl` in the image (docs/placeholder.md): kind, payload type, id
// and name. The same mark inlined ten times leaves ten equal arrays; they are read as one. The
// bytes are untrusted: what is not a declaration is counted, and two names with one id are
// reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cubin/image.h"

namespace iket::patch {

// Values of the byte at offset 6 of a declaration.
enum class EventKind : uint8_t {
  kMark = 0,
  kPush = 1,
  kPop = 2,
  kRangeBegin = 3,
  kRangeEnd = 4,
  kTokenBegin = 5,
  kTokenEnd = 6,
  kFlowOut = 7,
  kFlowIn = 8,
};
inline constexpr uint8_t kLastEventKind = 8;

// Values of the byte at offset 7, of which only the reader of records needs the others.
inline constexpr uint8_t kPayloadNone = 0;

struct Declaration {
  uint32_t id = 0;  // 31 bits, not 0
  EventKind kind = EventKind::kMark;
  uint8_t payload = kPayloadNone;
  std::string name;
  bool left_out = false;  // nobody wants its records (patch.h); never of a pop, which is its push's

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

struct Declarations {
  std::vector<Declaration> all;       // by id
  std::vector<std::string> problems;  // one sentence each: malformed arrays, ids of two names
};

// Reads the declarations of an image. Cost: one pass over its symbols.
Declarations ReadDeclarations(const cubin::Image& image);

}  // namespace iket::patch
