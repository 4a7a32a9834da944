// ring_memory.h: reads the ring memory of a guest from this process.
//
// Works while the guest runs, after a fault of its kernel, and after its death: the memory lives as
// long as somebody holds its handles. Maps them here, read-only where the driver can. Rings in the
// host's memory are files, and read as such: no driver is needed.
//
// Cost: the first window of a GPU makes a CUDA context in this process (0.2 s, some hundred MB of
// device memory); a copy runs at PCIe speed and does not disturb the guest's kernels.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "capture/writer.h"
#include "ring/layout.h"
#include "session/message.h"
#include "session/ring_image.h"
#include "supervisor/copy_lane.h"
#include "supervisor/driver.h"

namespace iket::supervisor {

// The rings of one context of a guest, mapped here. Gone with the window: its context must be
// current then, as for everything else here, in the calling thread.
class RingWindow {
 public:
  // Errors: kUsage (the guest's numbers make no layout), kSystem.
  static Result<std::unique_ptr<RingWindow>> Open(const Driver& driver,
                                                  const session::RingMemory& untrusted_memory);
  // Of rings in the host's memory; their descriptors must outlive the window.
  static Result<std::unique_ptr<RingWindow>> OpenInHost(
      const session::RingMemory& untrusted_memory);
  ~RingWindow();
  RingWindow(const RingWindow&) = delete;
  RingWindow& operator=(const RingWindow&) = delete;

  const ring::Layout& layout() const { return layout_; }
  uint32_t context() const { return context_; }

  bool is_in_host() const { return driver_ == nullptr; }
  // Makes the window's CUDA context, if it has one, current in this thread.
  Result<void> Enter() const;
  // Copies bytes of it. Refers to this window.
  session::WindowCopy Copy() const;

  // What only a kernel can tell (probe/clocks.h, probe/places.h). Nothing of rings in the host's
  // memory, of the software device and where the driver cannot; places all -1 where this GPU's
  // cannot be known. With the window entered.
  std::optional<capture::ClockExchange> ExchangeClocks() const;
  std::vector<capture::SmPlace> FindPlaces() const;

  // For copies by others: where table and rings are, and a lane to copy them with.
  RingPlace table() const;
  RingPlace rings() const;
  Result<std::unique_ptr<CopyLane>> OpenLane() const;
  // Windows with the same number share lanes.
  int lane_number() const { return is_in_host() ? -1 : device_; }

 private:
  class Mapping;
  explicit RingWindow(const Driver* driver);

  const Driver* driver_;  // null: in the host's memory
  ring::Layout layout_;
  uint32_t context_ = 0;
  CUdevice device_ = 0;
  CUcontext current_ = nullptr;
  int table_file_ = -1, rings_file_ = -1;
  std::unique_ptr<Mapping> table_;
  std::unique_ptr<Mapping> rings_;
};

// The windows of all guests, each opened when it is first asked for, and the driver with the first
// of them. Not for several threads.
class RingWindows {
 public:
  // `driver` as Options::driver.
  explicit RingWindows(std::string driver) : path_(std::move(driver)) {}

  // Opens the driver in a thread of its own, so that nobody waits for it later: 0.1 s. No CUDA
  // context is made, and no device memory taken.
  void OpenSoon();

  // With its CUDA context current. What failed once is not tried again.
  Result<RingWindow*> Find(const session::RingMemory& untrusted_memory);
  // Unmaps those of a process.
  void Forget(uint32_t pid);

 private:
  Result<std::unique_ptr<RingWindow>> Open(const session::RingMemory& untrusted_memory);

  std::string path_;
  std::future<Result<Driver>> opening_;
  std::unique_ptr<Result<Driver>> driver_;
  std::map<std::pair<uint32_t, uint32_t>, Result<std::unique_ptr<RingWindow>>> windows_;
};

// Says so of a context, as a sentence.
std::string NotRead(const session::RingMemory& memory, const std::string& why);

// Appends all used rings of one window, as the moment of this number. `live`: the guest may still
// be writing.
Result<void> AppendRings(RingWindow& window, bool live, uint64_t moment, capture::Writer& writer);

}  // namespace iket::supervisor
