// address_space.h: the virtual addresses of the device, and the host memory behind them.
//
// A range is first reserved (nobody else gets those addresses), then host memory is mapped into it;
// a range may be mapped in pieces. Memory is shared: what a running kernel may still reach lives as
// long as the kernel, also after Unmap.
//
// Thread safe. Find costs a binary search; the executor looks addresses up through an AddressView.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "sim/address_view.h"

namespace iket::sim {

// Zeroed pages of the host, which cost nothing until they are touched.
Result<HostMemory> AllocateHostMemory(uint64_t size);

class AddressSpace {
 public:
  // Device addresses are handed out from here up, far from those of a host process, so that a host
  // pointer and a device pointer are never the same by accident.
  static constexpr uint64_t kFirstAddress = uint64_t{0x200000000000};
  static constexpr uint64_t kLastAddress = uint64_t{0x3fffffffffff};

  // Reserves `size` bytes at a multiple of `alignment` (a power of two). With `hint` not 0 those
  // addresses, wherever they are, if they are free; else anywhere. Errors: kSystem when nothing is
  // free, kUsage for a size of 0.
  Result<uint64_t> Reserve(uint64_t size, uint64_t alignment, uint64_t hint = 0);
  // The whole range that a Reserve returned; what is mapped in it must be gone.
  Result<void> Release(uint64_t address);

  // Maps memory into a reserved range (or, for memory of the host at its own address, into one that
  // the caller reserved with that hint). Errors for what overlaps another mapping.
  Result<void> Map(uint64_t address, uint64_t size, HostMemory memory, bool writable = true);
  // Exactly one mapping, or several adjacent ones, that fill [address, address + size).
  Result<void> Unmap(uint64_t address, uint64_t size);

  // The host's pointer to [address, address + size), or null if any byte of it is not mapped as one
  // piece. Valid until that mapping goes.
  std::byte* Find(uint64_t address, uint64_t size) const;
  // The reservation that covers an address: {0, 0} if there is none.
  struct Range {
    uint64_t address = 0;
    uint64_t size = 0;
  };
  Range FindReservation(uint64_t address) const;

  std::shared_ptr<const Mappings> Snapshot() const;
  // Changes whenever mappings do.
  const std::atomic<uint64_t>& generation() const { return generation_; }

 private:
  void Publish();

  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> reserved_;  // address -> size
  std::map<uint64_t, Mapping> mapped_;
  std::shared_ptr<const Mappings> snapshot_ = std::make_shared<Mappings>();
  std::atomic<uint64_t> generation_{1};
};

}  // namespace iket::sim
