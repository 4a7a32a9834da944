// say.h: lines on stderr, each under the library's name and in one write.
#pragma once

#include <string_view>

namespace iket::simdriver {

// "iket-sim: <text>\n".
void Say(std::string_view text) noexcept;

// What a driver function returns that the software device does not have: CUDA_ERROR_NOT_SUPPORTED.
// Names the function on stderr, once in a process. `function` must live for ever.
int NotSupported(const char* function) noexcept;

}  // namespace iket::simdriver
