// limits.h: what cuCtxSetLimit sets of a context, and what launches there get of it.
//
// As CUDA documents: the sizes of printf's buffer and of malloc's heap can be set until the first
// launch of a kernel that uses them; a kernel that needs a larger stack than the limit raises it.
// Thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "sim/heap.h"
#include "sim/machine.h"
#include "simdriver/cuda_api.h"

namespace iket::simdriver {

class Limits {
 public:
  CUresult Get(CUlimit limit, size_t* value) const;
  CUresult Set(CUlimit limit, size_t value);

  // A launch of the kernel was asked for: fixes the limits that it uses.
  void Use(const sim::Kernel& kernel);
  // What such a launch runs with. The heap lives as long as this.
  void Apply(sim::LaunchConfig& launch);

 private:
  size_t Value(CUlimit limit) const;  // mutex_ is held

  mutable std::mutex mutex_;
  std::map<CUlimit, size_t> set_;
  bool printf_used_ = false;
  std::unique_ptr<sim::Heap> heap_;  // once used
};

}  // namespace iket::simdriver
