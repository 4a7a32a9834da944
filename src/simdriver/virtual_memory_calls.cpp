// Virtual memory management: addresses and physical memory apart, and memory handed to other
// processes as POSIX file descriptors.
#include <limits>
#include <map>
#include <mutex>

#include "simdriver/call.h"
#include "simdriver/memory.h"

namespace iket::simdriver {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;

struct MappedRange {
  uint64_t size = 0;
  uint64_t offset = 0;
  std::shared_ptr<PhysicalMemory> memory;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

struct Virtual {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> reserved;  // address -> size
  std::map<uint64_t, MappedRange> mapped;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<PhysicalMemory>> handles;
  std::map<CUmemGenericAllocationHandle, int> references;
  CUmemGenericAllocationHandle next = 1;

  CUmemGenericAllocationHandle Add(std::shared_ptr<PhysicalMemory> memory) {
    const CUmemGenericAllocationHandle handle = next++;
    handles.emplace(handle, std::move(memory));
    references[handle] = 1;
    return handle;
  }
};
Virtual& TheVirtual() {
  static auto* all = new Virtual;
  return *all;
}

bool Aligned(uint64_t value) { return value % kGranularity == 0; }

CUresult CheckProperties(const CUmemAllocationProp& properties) {
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsDevice(properties.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  const unsigned handles = properties.requestedHandleTypes;
  constexpr unsigned kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return (handles & ~kFile) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// Makes the device see a mapped range with these rights. The mutex is held.
CUresult Apply(uint64_t address, MappedRange& range, CUmemAccess_flags access) {
  if (range.access == access) return CUDA_SUCCESS;
  if (range.access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    if (!Addresses().Unmap(address, range.size)) return CUDA_ERROR_UNKNOWN;
    range.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  if (access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    // A share of all the pages, which begins at the offset.
    sim::HostMemory pages(range.memory->bytes(), range.memory->bytes().get() + range.offset);
    if (!Addresses().Map(address, range.size, std::move(pages),
                         access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  range.access = access;
  return CUDA_SUCCESS;
}

// The mapped ranges that fill [address, address + size) exactly; false if they do not. The mutex is
// held.
bool Covers(Virtual& all, uint64_t address, uint64_t size) {
  uint64_t end = address;
  for (auto it = all.mapped.find(address); end - address < size; ++it) {
    if (it == all.mapped.end() || it->first != end) return false;
    end += it->second.size;
  }
  return end - address == size;
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  return Call([&] {
    if (bytes == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = CheckProperties(*properties); bad != CUDA_SUCCESS) return bad;
    *bytes = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long options) {
  return Call([&] {
    const bool power = (alignment & (alignment - 1)) == 0;
    if (address == nullptr || bytes == 0 || !Aligned(bytes) || !power || options != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto reserved = Addresses().Reserve(bytes, std::max(alignment, kGranularity), hint);
    if (!reserved) return CUDA_ERROR_OUT_OF_MEMORY;
    all.reserved.emplace(*reserved, bytes);
    *address = *reserved;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return Call([&] {
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto found = all.reserved.find(address);
    if (found == all.reserved.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto inside = all.mapped.lower_bound(address);
    if (inside != all.mapped.end() && inside->first < address + bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!Addresses().Release(address)) return CUDA_ERROR_INVALID_VALUE;
    all.reserved.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long options) {
  return Call([&] {
    if (handle == nullptr || properties == nullptr || bytes == 0 || !Aligned(bytes) ||
        options != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult bad = CheckProperties(*properties); bad != CUDA_SUCCESS) return bad;
    auto memory = PhysicalMemory::Create(bytes, *properties);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    *handle = all.Add(std::move(*memory));
    return CUDA_SUCCESS;
  });
}

// Mapped memory lives on without its handle.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Call([&] {
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto count = all.references.find(handle);
    if (count == all.references.end()) return CUDA_ERROR_INVALID_VALUE;
    if (--count->second == 0) {
      all.references.erase(count);
      all.handles.erase(handle);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long options) {
  return Call([&] {
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto memory = all.handles.find(handle);
    if (memory == all.handles.end() || options != 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0 || !Aligned(bytes) || !Aligned(address) || !Aligned(offset) ||
        offset > memory->second->size() || bytes > memory->second->size() - offset) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto range = all.reserved.upper_bound(address);
    if (range == all.reserved.begin()) return CUDA_ERROR_INVALID_VALUE;
    --range;
    const uint64_t inside = address - range->first;
    if (inside > range->second || bytes > range->second - inside) return CUDA_ERROR_INVALID_VALUE;
    const auto after = all.mapped.lower_bound(address);
    if (after != all.mapped.end() && after->first < address + bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (after != all.mapped.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second.size > address) return CUDA_ERROR_INVALID_VALUE;
    }
    all.mapped.emplace(address,
                       MappedRange{.size = bytes, .offset = offset, .memory = memory->second});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return Call([&] {
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    if (!Covers(all, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (auto it = all.mapped.find(address); it != all.mapped.end() && it->first < address + bytes;
         it = all.mapped.erase(it)) {
      Apply(it->first, it->second, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* rights,
                        size_t count) {
  return Call([&] {
    if (rights == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    if (!Covers(all, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (rights[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
      if (!IsDevice(rights[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      for (auto it = all.mapped.find(address);
           it != all.mapped.end() && it->first < address + bytes; ++it) {
        const CUresult applied = Apply(it->first, it->second, rights[i].flags);
        if (applied != CUDA_SUCCESS) return applied;
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* rights, const CUmemLocation* location,
                        CUdeviceptr address) {
  return Call([&] {
    if (rights == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    auto it = all.mapped.upper_bound(address);
    if (it == all.mapped.begin()) return CUDA_ERROR_INVALID_VALUE;
    --it;
    if (address - it->first >= it->second.size) return CUDA_ERROR_INVALID_VALUE;
    *rights = it->second.access;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long options) {
  return Call([&] {
    if (shareable == nullptr || options != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto memory = all.handles.find(handle);
    if (memory == all.handles.end()) return CUDA_ERROR_INVALID_VALUE;
    if ((memory->second->properties().requestedHandleTypes & type) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int descriptor = memory->second->Descriptor();
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(shareable) = descriptor;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  return Call([&] {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const auto descriptor = reinterpret_cast<intptr_t>(shareable);
    if (descriptor < 0 || descriptor > std::numeric_limits<int>::max()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto memory = PhysicalMemory::Import(static_cast<int>(descriptor));
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    *handle = all.Add(std::move(*memory));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return Call([&] {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto memory = all.handles.find(handle);
    if (memory == all.handles.end()) return CUDA_ERROR_INVALID_VALUE;
    *properties = memory->second->properties();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return Call([&] {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Virtual& all = TheVirtual();
    const std::lock_guard lock(all.mutex);
    const auto wanted = reinterpret_cast<uint64_t>(address);
    auto it = all.mapped.upper_bound(wanted);
    if (it == all.mapped.begin()) return CUDA_ERROR_INVALID_VALUE;
    --it;
    if (wanted - it->first >= it->second.size) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& [known, memory] : all.handles) {
      if (memory != it->second.memory) continue;
      ++all.references[known];
      *handle = known;
      return CUDA_SUCCESS;
    }
    *handle = all.Add(it->second.memory);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
