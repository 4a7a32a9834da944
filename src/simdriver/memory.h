// memory.h: what the program allocated: device memory, host memory that the device sees, physical
// memory behind file descriptors.
//
// Device memory is host memory at addresses that the host does not use, so a program that reads a
// device pointer faults as it would with a GPU. Host memory that the device sees lies at its own
// address in both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "sim/address_space.h"
#include "simdriver/context.h"
#include "simdriver/cuda_api.h"
#include "simdriver/device.h"

namespace iket::simdriver {

// Pages of a memfd, which another process can map by its descriptor.
class PhysicalMemory {
 public:
  // Errors (kSystem): the system gives no such memory.
  static Result<std::shared_ptr<PhysicalMemory>> Create(size_t bytes,
                                                        const CUmemAllocationProp& properties);
  // Takes a duplicate of the descriptor.
  static Result<std::shared_ptr<PhysicalMemory>> Import(int untrusted_descriptor);
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();

  size_t size() const { return size_; }
  const sim::HostMemory& bytes() const { return bytes_; }
  const CUmemAllocationProp& properties() const { return properties_; }
  // A duplicate, for the caller to close; -1 if the system has none left.
  int Descriptor() const;

 private:
  PhysicalMemory() = default;
  Result<void> MapPages();

  int descriptor_ = -1;
  size_t size_ = 0;
  sim::HostMemory bytes_;
  CUmemAllocationProp properties_{};
  bool counted_ = false;  // as device memory of this process
};

struct Allocation {
  enum class Kind { kDevice, kPooled, kHost, kRegistered, kManaged };
  Kind kind = Kind::kDevice;
  uint64_t address = 0;
  size_t size = 0;
  unsigned flags = 0;  // of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged
  uint64_t buffer_id = 0;
  uint64_t context_id = 0;
  CUmemoryPool pool = nullptr;

  bool on_host() const { return kind == Kind::kHost || kind == Kind::kRegistered; }
};

// CUDA_ERROR_OUT_OF_MEMORY if there is none. The result is aligned to 512 bytes and zeroed.
CUresult Allocate(Allocation::Kind kind, size_t bytes, const Context& context, unsigned flags,
                  CUmemoryPool pool, uint64_t* address);
// Host memory of the program's own.
CUresult RegisterHostMemory(void* pointer, size_t bytes, const Context& context, unsigned flags);
// The allocation that begins at the address. The caller has waited for what may use it.
CUresult FreeAllocation(uint64_t address);
// The allocation that covers the address.
std::optional<Allocation> FindAllocation(uint64_t address);
// Of all kinds; at the end of a context, which waits first.
void FreeMemoryOf(const Context& context);
// Bytes of device memory in use, VMM included.
uint64_t DeviceBytesInUse();
// Pooled bytes of a pool in use, and their maximum so far.
struct PoolUse {
  uint64_t now = 0;
  uint64_t high = 0;
};
PoolUse BytesOfPool(CUmemoryPool pool);
void ResetHighOfPool(CUmemoryPool pool);

// Calls `each(host pointer, bytes)` for the pieces of host memory behind a range of the device's
// addresses, in order; false if some of it is not mapped, and then nothing is called.
template <typename Each>
bool ForEachPiece(uint64_t address, uint64_t size, const Each& each) {
  const std::shared_ptr<const sim::Mappings> mappings = Addresses().Snapshot();
  auto first = std::upper_bound(mappings->begin(), mappings->end(), address,
                                [](uint64_t a, const sim::Mapping& m) { return a < m.address; });
  if (first != mappings->begin()) --first;
  uint64_t covered = address;
  for (auto it = first; covered - address < size; ++it) {
    if (it == mappings->end() || it->address > covered || it->end() <= covered) return false;
    covered = it->end();
  }
  uint64_t done = 0;
  for (auto it = first; done < size; ++it) {
    const uint64_t offset = address + done - it->address;
    const uint64_t bytes = std::min(size - done, it->size - offset);
    each(it->memory.get() + offset, bytes);
    done += bytes;
  }
  return true;
}

}  // namespace iket::simdriver
