// cta.h: a CTA that is resident on a SM, and the launch it belongs to.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/device_model.h"
#include "sim/dim3.h"
#include "sim/fault.h"
#include "sim/warp.h"

namespace iket::sim {

class AddressSpace;
class Heap;
class Image;
class PrintFifo;
struct Kernel;

// Generic addresses of the windows onto shared and local memory: far from any device address.
inline constexpr uint32_t kSharedWindowHigh = 0x00001000;
inline constexpr uint64_t kSharedWindow = uint64_t{kSharedWindowHigh} << 32;
inline constexpr uint64_t kLocalWindow = uint64_t{0x00001100} << 32;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 24;
// Shared memory of the user begins behind what the system keeps.
inline constexpr uint32_t kReservedShared = 1024;

// What all CTAs of a launch share. Lives until the last of them is gone.
struct Launch {
  const Kernel* kernel = nullptr;
  const Image* image = nullptr;
  const DeviceModel* model = nullptr;
  AddressSpace* space = nullptr;
  Heap* heap = nullptr;  // may be null
  PrintFifo* printed = nullptr;
  Dim3 grid, block;
  uint32_t threads = 0;
  uint32_t warps = 0;         // a CTA
  uint32_t shared_bytes = 0;  // a CTA, reserved ones included
  uint32_t local_bytes = 0;   // a thread
  uint32_t registers = 0;     // a CTA, as a SM counts them
  uint64_t grid_id = 0;
  uint64_t code_base = 0;  // address of the first instruction
  std::vector<std::byte> constants0;
  uint64_t next_cta = 0;  // guarded by the machine's mutex, as is `left`
  uint64_t left = 0;
  uint64_t start_time = 0;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> instructions{0};
  std::atomic<uint64_t> end_time{0};

  std::mutex fault_mutex;
  std::optional<Fault> fault;
  void Fail(Fault&& what);  // the first one stays; stops the launch
};

struct CtaBarrier {
  uint32_t expected = 0;  // threads; 0: all live ones
  bool busy = false;
  std::array<uint32_t, kLanes> arrived{};  // lanes, a warp
  uint32_t true_count = 0;
  bool all_true = true;
  bool any_true = false;
};

struct Cta {
  std::shared_ptr<Launch> owner;  // keeps `launch` alive
  Launch* launch = nullptr;
  Sm* sm = nullptr;
  uint64_t index = 0;
  uint32_t id[3] = {0, 0, 0};
  std::vector<std::byte> shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<CtaBarrier, 16> barriers;
  uint32_t live_warps = 0;

  enum class Reduction : uint8_t { kNone, kPopc, kAnd, kOr };
  // Lanes `mask` of the warp arrive; with `wait` they are held until the barrier completes.
  void Arrive(Warp& warp, uint32_t mask, uint32_t barrier, uint32_t threads, bool wait,
              uint32_t true_lanes);
  void LanesExited(Warp& warp);
  std::byte* Shared(uint64_t address, uint32_t size) {
    address &= kWindowBytes - 1;  // above: the rank in the cluster, always 0
    if (address > shared.size() || size > shared.size() - address) return nullptr;
    return shared.data() + address;
  }

 private:
  void TryComplete(uint32_t barrier, uint64_t time);
};

}  // namespace iket::sim
