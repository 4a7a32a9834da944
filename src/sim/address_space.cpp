#include "sim/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace iket::sim {
namespace {

// What stays free behind a reservation, so that running over its end is noticed.
constexpr uint64_t kGap = 4096;

}  // namespace

Result<HostMemory> AllocateHostMemory(uint64_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, "no {} bytes of host memory for the software device: {}", size,
                std::strerror(errno));
  }
  return HostMemory(static_cast<std::byte*>(memory), [size](std::byte* p) { munmap(p, size); });
}

Result<uint64_t> AddressSpace::Reserve(uint64_t size, uint64_t alignment, uint64_t hint) {
  if (size == 0) return Fail(ErrorKind::kUsage, "a reservation of 0 bytes");
  if (alignment == 0) alignment = 1;
  if ((alignment & (alignment - 1)) != 0) {
    return Fail(ErrorKind::kUsage, "an alignment of {}, which is no power of two", alignment);
  }
  const std::lock_guard lock(mutex_);
  const auto is_free = [&](uint64_t address) {
    if (address + size < address) return false;
    const auto after = reserved_.lower_bound(address);
    if (after != reserved_.end() && after->first < address + size) return false;
    return after == reserved_.begin() ||
           std::prev(after)->first + std::prev(after)->second <= address;
  };
  if (hint != 0 && hint % alignment == 0 && is_free(hint)) {
    reserved_.emplace(hint, size);
    return hint;
  }
  if (size > kLastAddress - kFirstAddress) {
    return Fail(ErrorKind::kSystem, "no {} bytes of device addresses are free", size);
  }
  uint64_t address = (kFirstAddress + alignment - 1) & ~(alignment - 1);
  for (auto it = reserved_.lower_bound(kFirstAddress); it != reserved_.end(); ++it) {
    if (address + size + kGap <= it->first) break;
    address = std::max(address, (it->first + it->second + kGap + alignment - 1) & ~(alignment - 1));
  }
  if (address > kLastAddress || size > kLastAddress - address || !is_free(address)) {
    return Fail(ErrorKind::kSystem, "no {} bytes of device addresses are free", size);
  }
  reserved_.emplace(address, size);
  return address;
}

Result<void> AddressSpace::Release(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end()) {
    return Fail(ErrorKind::kUsage, "no reservation begins at {:#x}", address);
  }
  const auto inside = mapped_.lower_bound(address);
  if (inside != mapped_.end() && inside->first < address + found->second) {
    return Fail(ErrorKind::kUsage, "memory is still mapped at {:#x}", inside->first);
  }
  reserved_.erase(found);
  return {};
}

Result<void> AddressSpace::Map(uint64_t address, uint64_t size, HostMemory memory, bool writable) {
  const std::lock_guard lock(mutex_);
  const auto range = reserved_.upper_bound(address);
  if (size == 0 || range == reserved_.begin() ||
      std::prev(range)->first + std::prev(range)->second < address + size ||
      address + size < address) {
    return Fail(ErrorKind::kUsage, "[{:#x}, {:#x}) is not inside a reservation", address,
                address + size);
  }
  const auto after = mapped_.lower_bound(address);
  if ((after != mapped_.end() && after->first < address + size) ||
      (after != mapped_.begin() && std::prev(after)->second.end() > address)) {
    return Fail(ErrorKind::kUsage, "memory is mapped already inside [{:#x}, {:#x})", address,
                address + size);
  }
  mapped_.emplace(address, Mapping{address, size, std::move(memory), writable});
  Publish();
  return {};
}

Result<void> AddressSpace::Unmap(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto first = mapped_.find(address);
  auto last = first;
  uint64_t end = address;
  while (last != mapped_.end() && last->first == end && end - address < size) {
    end = last->second.end();
    ++last;
  }
  if (first == mapped_.end() || end - address != size) {
    return Fail(ErrorKind::kUsage, "[{:#x}, {:#x}) is not what was mapped", address,
                address + size);
  }
  mapped_.erase(first, last);
  Publish();
  return {};
}

std::byte* AddressSpace::Find(uint64_t address, uint64_t size) const {
  const std::lock_guard lock(mutex_);
  auto it = mapped_.upper_bound(address);
  if (it == mapped_.begin()) return nullptr;
  --it;
  const uint64_t offset = address - it->first;
  if (offset > it->second.size || size > it->second.size - offset) return nullptr;
  return it->second.memory.get() + offset;
}

AddressSpace::Range AddressSpace::FindReservation(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto it = reserved_.upper_bound(address);
  if (it == reserved_.begin()) return {};
  --it;
  if (address - it->first >= it->second) return {};
  return {it->first, it->second};
}

std::shared_ptr<const Mappings> AddressSpace::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

void AddressSpace::Publish() {
  auto mappings = std::make_shared<Mappings>();
  mappings->reserve(mapped_.size());
  for (const auto& [address, mapping] : mapped_) mappings->push_back(mapping);
  snapshot_ = std::move(mappings);
  generation_.fetch_add(1, std::memory_order_release);
}

AddressView::AddressView(const AddressSpace& space)
    : space_(&space), generation_(&space.generation()) {}

std::byte* AddressView::FindSlow(uint64_t address, uint64_t size, bool write) {
  const uint64_t now = generation_->load(std::memory_order_acquire);
  if (seen_ != now || mappings_ == nullptr) {
    size_ = 0;
    mappings_ = space_->Snapshot();
    seen_ = now;
  }
  auto it = std::upper_bound(mappings_->begin(), mappings_->end(), address,
                             [](uint64_t a, const Mapping& m) { return a < m.address; });
  if (it == mappings_->begin()) return nullptr;
  --it;
  const uint64_t offset = address - it->address;
  if (offset > it->size || size > it->size - offset || (write && !it->writable)) return nullptr;
  address_ = it->address;
  size_ = it->size;
  host_ = it->memory.get();
  writable_ = it->writable;
  return host_ + offset;
}

}  // namespace iket::sim
