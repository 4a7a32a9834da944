// declaration.h: what the marks of an image are called.
//
// Every mark leaves an array `iket_decl` in the image (docs/placeholder.md): kind, payload type,
// id, name, and what else is said of it. The same mark inlined ten times leaves ten equal arrays;
// they are read as one. The bytes are untrusted: what is not a declaration is counted, and two
// names with one id are reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cubin/image.h"
#include "ring/event_kind.h"

namespace iket::patch {

using ring::AttributeKind;
using ring::EventKind;  // the byte at offset 6 of a declaration

// Values of the byte at offset 7, of which only the reader of records needs the others.
inline constexpr uint8_t kPayloadNone = 0;

// What is said beyond the name. The kind may be one of a later version, without a name here.
struct Attribute {
  AttributeKind what = AttributeKind::kValueName;
  uint8_t number = 0;
  std::string text{};

  friend auto operator<=>(const Attribute&, const Attribute&) = default;
};

struct Declaration {
  uint32_t id = 0;  // 31 bits, not 0
  EventKind kind = EventKind::kMark;
  uint8_t payload = kPayloadNone;
  std::string name;
  std::vector<Attribute> attributes{};
  // Where its marks stand in the source; empty: not known, or at several places.
  std::string file{};
  uint32_t line = 0;
  bool left_out = false;  // nobody wants its records (patch.h); never of a pop, which is its push's

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

// What depends on what by design: from an event's name to another's.
struct Edge {
  std::string dag, from, to, label, via;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

struct Declarations {
  std::vector<Declaration> all;  // by id
  std::vector<Edge> edges;
  // One sentence each: malformed arrays, ids of two names. Of many the first, and how many more.
  std::vector<std::string> problems;
};

// Reads the declarations of an image. Cost: one pass over its symbols.
Declarations ReadDeclarations(const cubin::Image& image);

}  // namespace iket::patch
