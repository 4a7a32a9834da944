// gpus.h: the GPUs that a program would see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::supervisor {

// `driver` is a libcuda.so.1; empty: the system's.

// Why no program can use a GPU: there is no driver, an old one, no GPU. Part of a sentence; empty
// if one can.
std::string WhyNoGpu(const std::string& driver);

// As the driver numbers them. Errors as WhyNoGpu says them.
struct Gpu {
  std::string name;
  bool simulated = false;  // of iket's own driver
  uint32_t sm = 0;         // 90 for compute capability 9.0
  uint32_t sm_count = 0;
};
struct GpuList {
  uint32_t driver_version = 0;  // of CUDA, as cuDriverGetVersion says it: 13000 for 13.0
  std::vector<Gpu> gpus;
};
Result<GpuList> ListGpus(const std::string& driver);

}  // namespace iket::supervisor
