// testing_gpu.h: a driver that answers as a GPU with the probe's kernels would, for tests.
#pragma once

#include <atomic>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "probe/driver_calls.h"

namespace iket::probe::testing {

// One at a time. Kernels run in a thread of their own; launches wait for the one before.
class Gpu {
 public:
  Gpu() { current_ = this; }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() {
    Join();
    current_ = nullptr;
  }

  int64_t timer_ahead_ns = 0;
  // The kernel of the clock: does it answer this question, and how much later?
  std::function<bool(uint32_t round)> answers = [](uint32_t) { return true; };
  // The other: what CTAs of clusters of this size say; nothing if the GPU takes none such.
  std::function<std::vector<std::pair<uint32_t, uint32_t>>(uint32_t ctas, uint32_t cluster)> places;
  bool hangs = false;   // no kernel ends
  std::string missing;  // a function that this driver lacks

  void Join() {
    if (kernel_.joinable()) kernel_.join();
  }
  int modules = 0, pages = 0, streams = 0;  // that were not given back

  DriverCalls Calls() { return *Find(); }
  std::optional<DriverCalls> Find() {
    return DriverCalls::Find(
        [this](const char* name) -> void* { return missing == name ? nullptr : Symbol(name); });
  }

 private:
  static Gpu& Current() { return *current_; }
  static void* Symbol(const std::string& name) {
    const auto pointer = [](auto* function) { return reinterpret_cast<void*>(function); };
    if (name == "cuCtxGetDevice") {
      return pointer(+[](CUdevice* device) { return *device = 0, CUDA_SUCCESS; });
    }
    if (name == "cuDeviceGetAttribute") {
      return pointer(+[](int* value, CUdevice_attribute, CUdevice) {
        return *value = 200 << 10, CUDA_SUCCESS;
      });
    }
    if (name == "cuModuleLoadData") {
      return pointer(+[](CUmodule* module, const void* image) {
        *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
        ++Current().modules;
        return CUDA_SUCCESS;
      });
    }
    if (name == "cuModuleUnload") {
      return pointer(+[](CUmodule) { return --Current().modules, CUDA_SUCCESS; });
    }
    if (name == "cuModuleGetFunction") {
      return pointer(+[](CUfunction* function, CUmodule, const char* kernel) {
        Current().is_clock_ = std::strcmp(kernel, "iket_probe_clock") == 0;
        return *function = nullptr, CUDA_SUCCESS;
      });
    }
    if (name == "cuFuncSetAttribute") {
      return pointer(+[](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; });
    }
    if (name == "cuMemHostAlloc") {
      return pointer(+[](void** memory, size_t bytes, unsigned) {
        ++Current().pages;
        return *memory = ::operator new(bytes, std::align_val_t(4096)), CUDA_SUCCESS;
      });
    }
    if (name == "cuMemFreeHost") {
      return pointer(+[](void* memory) {
        --Current().pages;
        return ::operator delete(memory, std::align_val_t(4096)), CUDA_SUCCESS;
      });
    }
    if (name == "cuStreamCreate") {
      return pointer(+[](CUstream* stream, unsigned) {
        ++Current().streams;
        return *stream = reinterpret_cast<CUstream>(&Current()), CUDA_SUCCESS;
      });
    }
    if (name == "cuStreamQuery") {
      return pointer(+[](CUstream) {
        return Current().running_ || Current().hangs ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
      });
    }
    if (name == "cuStreamDestroy_v2") {
      return pointer(+[](CUstream) { return --Current().streams, CUDA_SUCCESS; });
    }
    if (name == "cuLaunchKernelEx") {
      return pointer(+[](const CUlaunchConfig* config, CUfunction, void** arguments, void**) {
        return Current().Launch(*config, arguments);
      });
    }
    return nullptr;
  }

  CUresult Launch(const CUlaunchConfig& config, void** arguments) {
    Join();
    if (!is_clock_) {
      const uint32_t cluster = config.attrs[0].value.clusterDim.x;
      const auto rows = places(config.gridDimX, cluster);
      if (rows.empty()) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
      auto* out = *static_cast<uint32_t**>(arguments[0]);
      for (const auto& [sm, affinity] : rows) {
        *out++ = sm;
        *out++ = affinity;
      }
      return CUDA_SUCCESS;
    }
    running_ = true;
    kernel_ = std::thread([this, asked = *static_cast<volatile uint32_t**>(arguments[0]),
                           timer = *static_cast<volatile uint64_t**>(arguments[1]),
                           answered = *static_cast<uint32_t**>(arguments[2]),
                           rounds = *static_cast<uint32_t*>(arguments[3])] {
      for (uint32_t round = 1; round <= rounds; ++round) {
        while (*asked < round) std::this_thread::yield();
        if (!answers(round)) break;
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        *timer = static_cast<uint64_t>(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec +
                                       timer_ahead_ns);
        std::atomic_ref(*answered).store(round, std::memory_order_release);
      }
      running_ = false;
    });
    return CUDA_SUCCESS;
  }

  static inline Gpu* current_ = nullptr;
  bool is_clock_ = false;
  std::atomic<bool> running_ = false;
  std::thread kernel_;
};

}  // namespace iket::probe::testing
