// SPDX-License-Identifier: Apache-2.0
//
// For small programs of the driver API that tests run: GOOD(cuInit(0)) is true, or false after it
// has said which call failed with which error.
#pragma once

#include <cuda.h>

#include <cstdio>

inline bool Good(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return true;
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "an unknown error";
  std::printf("%s: %s\n", call, name);
  return false;
}
#define GOOD(call) Good(call, #call)
