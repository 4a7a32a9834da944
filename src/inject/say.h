// say.h: the library's only way to speak.
//
// One line on standard error, "iket: ...", written with one write(2): no stdio of the program is
// touched. A given text is said once a process. IKET_QUIET=1 silences it.
#pragma once

#include <string_view>

namespace iket::inject {

void Say(std::string_view text) noexcept;

}  // namespace iket::inject
