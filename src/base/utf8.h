// utf8.h: which bytes of an untrusted text are characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace iket {

// Length of the well-formed UTF-8 sequence at the start of `text`, which is not empty (RFC 3629: no
// overlong forms, no surrogates), or 0.
size_t Utf8Length(std::string_view text);

}  // namespace iket
