// mangled_node.h: the parts of a mangled name, between parser and printer. Private to the room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace iket::capture {

// A part of a name. Parts are shared: a substitution is the same node again.
struct MangledNode {
  enum class Kind {
    kText,        // text
    kNested,      // first::second
    kTemplate,    // first<items>
    kQualified,   // first, then text such as " const"
    kPointer,     // first, then text: *, & or &&
    kMember,      // pointer to member `second` of class `first`
    kFunction,    // type: items[0] returned, the others parameters; text after the parenthesis
    kArray,       // of `first`; the dimension is text, or `second` if not null
    kPack,        // items, one after the other
    kExpansion,   // `first`, once for each item of the pack in it
    kLiteral,     // (first)text
    kLambda,      // {lambda(items)#text}
    kEncoding,    // function `second` with parameters items, returning `first` if not null
    kLocal,       // entity `second` of function `first`
    kAddress,     // &first
    kParameter,   // argument `index` of the template that is being printed
    kConversion,  // operator first
  };
  Kind kind = Kind::kText;
  std::string text{};
  size_t index = 0;
  const MangledNode* first = nullptr;
  const MangledNode* second = nullptr;
  std::vector<const MangledNode*> items{};
};

// Appends the text of `root` to `out`; false when that would pass `max_bytes`.
bool PrintMangled(const MangledNode& root, size_t max_bytes, std::string& out);

}  // namespace iket::capture
