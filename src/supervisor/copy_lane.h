// copy_lane.h: one thread's own way from rings to here: a stream, and page-locked memory that
// copies from a GPU go to; or plain memory that rings of the host are read into.
//
// A copy that was begun goes on by itself; so while one buffer is looked at, the next is filled.
//
// Cost: page-locked memory of the copies' sizes, a MiB a buffer at least; keeps the device's
// primary context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "supervisor/driver.h"

namespace iket::supervisor {

// Where bytes of a window are: in device memory, or in a memory file.
struct RingPlace {
  CUdeviceptr address = 0;
  int file = -1;  // else not -1, and the bytes are at:
  uint64_t offset = 0;

  RingPlace operator+(uint64_t bytes) const { return {address + bytes, file, offset + bytes}; }
};

// Reads bytes of a memory file of another process. It is not mapped: whoever has it too may cut it.
// Errors: kSystem, kBadInput (it ends too early).
Result<void> ReadUntrustedFile(int file, void* to, uint64_t offset, size_t bytes);

class CopyLane {
 public:
  static constexpr size_t kBuffers = 3;

  // Error: kSystem. `driver` must outlive it. The device's primary context is current then in the
  // calling thread; whoever else uses or destroys the lane must have made it so: Enter().
  static Result<std::unique_ptr<CopyLane>> Open(const Driver& driver, CUdevice device);
  // For rings in the host's memory.
  static std::unique_ptr<CopyLane> OpenInHost();
  ~CopyLane();
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  Result<void> Enter() const;
  // Begins to copy into a buffer; what was there is gone.
  Result<void> Begin(size_t buffer, RingPlace from, size_t bytes);
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
  CopyLane(const Driver* driver, CUdevice device) : driver_(driver), device_(device) {}
  void Grow(Buffer& buffer, size_t bytes) const;
  void Free(Buffer& buffer) const;

  const Driver* driver_;  // null: in the host's memory
  CUdevice device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::array<Buffer, kBuffers> buffers_;
};

}  // namespace iket::supervisor
