// address_view.h: one thread's way of looking device addresses up.
//
// Remembers the mapping of the last access and follows changes of the address space. Cost: a few
// comparisons where the same mapping is hit again, else a binary search. What handlers include: it
// needs nothing but the standard library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace iket::sim {

class AddressSpace;

// Host memory of which a mapping keeps a share; points at its first byte.
using HostMemory = std::shared_ptr<std::byte>;

struct Mapping {
  uint64_t address = 0;
  uint64_t size = 0;
  HostMemory memory;
  bool writable = true;

  uint64_t end() const { return address + size; }
};
// All mappings at one moment, by address.
using Mappings = std::vector<Mapping>;

class AddressView {
 public:
  explicit AddressView(const AddressSpace& space);

  // The host's pointer to [address, address + size), or null if any byte of it is not mapped as one
  // piece, or not for writing.
  std::byte* Find(uint64_t address, uint64_t size, bool write) {
    const uint64_t offset = address - address_;
    if (seen_ == generation_->load(std::memory_order_acquire) && offset <= size_ &&
        size <= size_ - offset && (!write || writable_)) {
      return host_ + offset;
    }
    return FindSlow(address, size, write);
  }

 private:
  std::byte* FindSlow(uint64_t address, uint64_t size, bool write);

  const AddressSpace* space_;
  const std::atomic<uint64_t>* generation_;
  uint64_t seen_ = 0;
  std::shared_ptr<const Mappings> mappings_;
  // The last mapping; empty at first.
  uint64_t address_ = 0;
  uint64_t size_ = 0;
  std::byte* host_ = nullptr;
  bool writable_ = false;
};

}  // namespace iket::sim
