// cute_dsl.h: what makes the DSLs of NVIDIA's CuTe family keep their marks.
//
// They drop IKET's operations when they compile a kernel, unless the token `iket` stands among the
// options in <PREFIX>_COMPILER_OPT. run-iket adds it to the program's environment; so do we, and
// leave alone what the person has set there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iket::cli {

// `options` with the token, behind a blank; as they are if it is among them. Tokens are separated
// by blanks and commas; `--iket`, `iket=..` and `iket{..}` are forms of it.
std::string WithIket(std::string_view options);

// The variables that have to be changed or set in the program's environment, with their values.
std::vector<std::pair<std::string, std::string>> CuteDslEnvironment();

}  // namespace iket::cli
