// real_function.h: the driver's own function behind a hook of the same name. For the files that
// define hooks.
#pragma once

#include <cuda.h>

#include <string_view>

#include "inject/driver.h"

// The driver's function of this exported name, with the type of ours.
#define IKET_REAL(name) (iket::inject::RealFunction<decltype(&::name)>(#name))

namespace iket::inject {

template <typename Function>
Function RealFunction(const char* name) noexcept {
  return reinterpret_cast<Function>(FindReal(name));
}

// The stream that a call of this name works in: where stream 0 is the thread's own it is said so.
constexpr bool IsPerThread(std::string_view called) { return called.ends_with("_ptsz"); }
inline CUstream StreamOf(std::string_view called, CUstream stream) noexcept {
  return stream == nullptr && IsPerThread(called) ? CU_STREAM_PER_THREAD : stream;
}

// What a driver function returns that this driver does not have.
inline constexpr CUresult kMissing = CUDA_ERROR_NOT_FOUND;

}  // namespace iket::inject
