// heap.h: device malloc: one piece of device memory, handed out first fit.
//
// Thread safe. Cost: linear in the number of pieces; it is there to be right, not fast.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "sim/address_space.h"

namespace iket::sim {

class Heap {
 public:
  Heap(AddressSpace& space, uint64_t bytes) : space_(&space), bytes_(bytes) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // The address of `size` bytes, aligned to 16; 0 if there is no room.
  uint64_t Allocate(uint64_t size);
  // False if it was not allocated.
  bool Free(uint64_t address);

 private:
  AddressSpace* space_;
  uint64_t bytes_;
  std::mutex mutex_;
  uint64_t base_ = 0;
  std::map<uint64_t, uint64_t> used_;  // address -> size
};

}  // namespace iket::sim
