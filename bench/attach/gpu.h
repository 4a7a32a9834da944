// SPDX-License-Identifier: Apache-2.0
//
// What attach.cpp does with a GPU, over the CUDA runtime (ATTACH_RUNTIME: what people write, and
// what run-iket was seen to collect) or over the driver API, for the software device. An error ends
// the program with 1, except those of Wait(), which a program may expect.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace attach {

// Columns of the table in gpu_runtime.h and gpu_driver.h.
enum Kernel { kUnmarked, kMarked, kSteps, kEnds, kBad, kStream, kCompute, kLoad, kKernels };

struct Memory {
  size_t free, total;  // bytes, of all processes on the GPU together
};

[[noreturn]] inline void Failed(const char* call, const char* error) {
  std::fprintf(stderr, "%s failed: %s\n", call, error);
  std::exit(1);
}

}  // namespace attach

#if defined(ATTACH_RUNTIME)
#include "gpu_runtime.h"
#else
#include "gpu_driver.h"
#endif
