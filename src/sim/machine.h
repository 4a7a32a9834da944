// machine.h: the software device's processors: runs a grid of real sm_90 machine code to its end.
//
// Run may be called from many threads at once: grids of different callers run side by side on the
// same SMs, as far as there is room, and each warp has its hardware slot for itself. Memory is the
// AddressSpace's. A fault ends its own launch alone.
//
// Time: a plain model (docs/design/software-device.md). All clocks of the device start at 0 when
// the machine is made and go on over launches. No figure of it is a measurement.
//
// The same machine runs on as many host threads as there are cores; they sleep when there is no
// launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "sim/address_space.h"
#include "sim/device_model.h"
#include "sim/fault.h"
#include "sim/image.h"

namespace iket::sim {

class Heap;

struct LaunchConfig {
  const Kernel* kernel = nullptr;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t dynamic_shared = 0;
  std::span<const std::byte> params;  // laid out as the kernel's parameters; short ones are zeroed
  uint64_t grid_id = 0;               // counts launches; %gridid is its low half
  bool cooperative = false;           // all CTAs must fit at once
  // Limits of the context.
  uint32_t stack_bytes = DeviceModel{}.stack_bytes_per_thread;  // least local memory of a thread
  uint64_t printf_bytes = DeviceModel{}.printf_bytes;  // kept of what is printed: the latest
  Heap* heap = nullptr;                                // of device malloc; null: it gives null
};

struct LaunchStatistics {
  uint64_t warp_instructions = 0;
  uint64_t cycles = 0;              // of the device's model
  uint64_t printf_overwritten = 0;  // calls whose text the later ones took the place of
};

struct MachineOptions {
  uint32_t host_threads = 0;  // 0: as many as there are cores
  // Where device printf goes when its launch is over, the text of a call at a time; must be thread
  // safe. Empty: stdout.
  std::function<void(std::string_view)> print;
};

class Machine {
 public:
  Machine(const DeviceModel& model, AddressSpace& space, MachineOptions options = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();  // no Run may be going on

  // Blocks until the grid is done; nothing if all went well. The image of the kernel must live
  // until then.
  std::optional<Fault> Run(const LaunchConfig& launch, const std::stop_token& stop = {},
                           LaunchStatistics* statistics = nullptr);

  // CTAs of a kernel that fit on a SM at once; 0 if not even one does.
  uint32_t MaxCtasPerSm(const Kernel& kernel, uint64_t threads, uint32_t dynamic_shared) const;
  const DeviceModel& model() const;
  // %globaltimer now, ns.
  uint64_t TimeNs() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace iket::sim
