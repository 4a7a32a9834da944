// copy_lane.h: one thread's own way from a GPU's memory to here: a stream, and page-locked memory
// that copies go to.
//
// A copy that was begun goes on by itself; so while one buffer is looked at, the next is filled.
//
// Cost: page-locked memory of the copies' sizes, a MiB a buffer at least; keeps the device's
// primary context.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "supervisor/driver.h"

namespace iket::supervisor {

class CopyLane {
 public:
  static constexpr size_t kBuffers = 3;

  // Error: kSystem. `driver` must outlive it. The device's primary context is current then in the
  // calling thread; whoever else uses or destroys the lane must have made it so: Enter().
  static Result<std::unique_ptr<CopyLane>> Open(const Driver& driver, CUdevice device);
  ~CopyLane();
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  Result<void> Enter() const;
  // Begins to copy into a buffer; what was there is gone.
  Result<void> Begin(size_t buffer, CUdeviceptr from, size_t bytes);
  // Waits until all that was begun is there.
  Result<void> Wait() const;
  // Of the buffer's last copy.
  std::span<const std::byte> Bytes(size_t buffer) const {
    return {buffers_[buffer].memory, buffers_[buffer].used};
  }

 private:
  struct Buffer {
    std::byte* memory = nullptr;
    size_t size = 0;
    size_t used = 0;
    bool is_locked = false;             // else it is `plain`
    std::vector<std::byte> plain = {};  // where the driver locks no more
  };
  CopyLane(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}
  void Grow(Buffer& buffer, size_t bytes) const;
  void Free(Buffer& buffer) const;

  const Driver& driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::array<Buffer, kBuffers> buffers_;
};

}  // namespace iket::supervisor
