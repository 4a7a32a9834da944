#include "sim/heap.h"

#include <algorithm>

namespace iket::sim {

Heap::~Heap() {
  if (base_ == 0) return;
  (void)space_->Unmap(base_, bytes_);
  (void)space_->Release(base_);
}

uint64_t Heap::Allocate(uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (size > bytes_) return 0;
  if (base_ == 0) {
    const auto base = space_->Reserve(bytes_, 4096);
    if (!base) return 0;
    auto memory = AllocateHostMemory(bytes_);
    if (!memory || !space_->Map(*base, bytes_, std::move(*memory))) {
      (void)space_->Release(*base);
      return 0;
    }
    base_ = *base;
  }
  const uint64_t wanted = std::max<uint64_t>((size + 15) & ~uint64_t{15}, 16);
  uint64_t at = base_;
  for (const auto& [address, bytes] : used_) {
    if (address - at >= wanted) break;
    at = address + bytes;
  }
  if (wanted > base_ + bytes_ - at) return 0;
  used_.emplace(at, wanted);
  return at;
}

bool Heap::Free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  return used_.erase(address) != 0;
}

}  // namespace iket::sim
