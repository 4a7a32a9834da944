// call.h: what every driver function does first and last.
//
// A body runs only if what it needs is there; what it throws does not leave the library.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "simdriver/context.h"
#include "simdriver/cuda_api.h"
#include "simdriver/say.h"

namespace iket::simdriver {

// Set by cuInit.
bool Initialized() noexcept;

// While a host function of a stream runs on this thread, driver calls are not permitted.
class InsideHostFunction {
 public:
  InsideHostFunction() noexcept { active_ = true; }
  InsideHostFunction(const InsideHostFunction&) = delete;
  InsideHostFunction& operator=(const InsideHostFunction&) = delete;
  ~InsideHostFunction() { active_ = false; }
  static bool active() noexcept { return active_; }

 private:
  static inline thread_local bool active_ = false;
};

// For functions that work before cuInit. `body` returns CUresult.
template <typename Body>
CUresult GuardedCall(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    Say(std::string("internal error: ") + error.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

// For functions that need no context.
template <typename Body>
CUresult Call(const Body& body) noexcept {
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (InsideHostFunction::active()) return CUDA_ERROR_NOT_PERMITTED;
  return GuardedCall(body);
}

// For those that need one: `body` takes Context&, which is current and has not failed.
template <typename Body>
CUresult ContextCall(const Body& body) noexcept {
  return Call([&]() -> CUresult {
    const std::shared_ptr<Context> context = CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->error() != CUDA_SUCCESS) return context->error();
    return body(*context);
  });
}

}  // namespace iket::simdriver
