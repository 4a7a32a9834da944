// kernels.h: the probe's kernels, loaded into the current context.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "probe/driver_calls.h"

namespace iket::probe {

// Code for every GPU that iket knows, as a driver takes it.
std::span<const std::byte> KernelImage();

// A kernel, a stream of its own and page-locked memory that both sides see, zeroed. When it goes
// and the kernel has not ended, it leaves all of it where it is: memory that a kernel may still
// write to is never given back.
class Bench {
 public:
  static std::optional<Bench> Set(const DriverCalls& calls, const char* kernel, size_t bytes);
  Bench(Bench&& other) noexcept;
  Bench& operator=(Bench&& other) noexcept;
  ~Bench();

  std::byte* memory() const { return memory_; }
  CUfunction function() const { return function_; }
  CUstream stream() const { return stream_; }

  // False if the kernel has failed, or still runs after so long.
  bool Ends(std::chrono::nanoseconds patience) const;

 private:
  explicit Bench(const DriverCalls& calls) : calls_(calls) {}

  DriverCalls calls_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  std::byte* memory_ = nullptr;
};

}  // namespace iket::probe
