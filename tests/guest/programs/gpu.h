// What process.cpp does with a GPU, over the CUDA runtime (GUEST_RUNTIME) or over the driver. An
// error ends the program with its name, so that what is printed shows it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace guest {

inline constexpr unsigned kGrid = 8, kBlock = 64, kRounds = 3, kThreads = kGrid * kBlock;

[[noreturn]] inline void Failed(const char* call, const char* error) {
  std::printf("%s: %s\n", call, error);
  std::fflush(stdout);
  std::_Exit(1);
}

}  // namespace guest

#if defined(GUEST_RUNTIME)
#include "gpu_runtime.h"
#else
#include "gpu_driver.h"
#endif
