// Stream-ordered allocation and its pools.
//
// An address is handed out at the call and may be used in the stream from then on; it is given back
// when the stream comes to the free. Pools keep nothing: what is freed goes back at once, which any
// release threshold allows a driver to do.
#include <map>
#include <mutex>

#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/memory.h"

namespace iket::simdriver {

class MemoryPool {
 public:
  explicit MemoryPool(const CUmemPoolProps& asked) : props(asked) {}

  const CUmemPoolProps props;
  std::mutex mutex;  // guards what follows
  int reuse_follow_event = 1;
  int reuse_opportunistic = 1;
  int reuse_internal = 1;
  cuuint64_t release_threshold = 0;
};
using Pools = HandleTable<MemoryPool, CUmemoryPool>;

namespace {

struct Defaults {
  std::mutex mutex;
  CUmemoryPool standard = nullptr;  // the device's own
  CUmemoryPool current = nullptr;
};
Defaults& TheDefaults() {
  static auto* defaults = new Defaults;
  const std::lock_guard lock(defaults->mutex);
  if (defaults->standard == nullptr) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    defaults->standard = Pools::Get().Add(std::make_shared<MemoryPool>(props));
    defaults->current = defaults->standard;
  }
  return *defaults;
}

CUmemoryPool CurrentPool() {
  Defaults& defaults = TheDefaults();
  const std::lock_guard lock(defaults.mutex);
  return defaults.current;
}

class FreeOperation : public Operation {
 public:
  explicit FreeOperation(uint64_t address) : address_(address) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
  CUresult Run() const override { return FreeAllocation(address_); }
  bool runs_after_error() const override { return true; }

 private:
  uint64_t address_;
};

bool IsCapturing(Context& context, CUstream handle) {
  const auto stream = context.FindStream(handle);
  return stream != nullptr && StateOfCapture(stream).status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult AllocateFrom(CUmemoryPool pool, CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return ContextCall([&](Context& context) {
    if (pointer == nullptr || Pools::Get().Find(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (context.FindStream(stream) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (IsCapturing(context, stream)) {
      return static_cast<CUresult>(NotSupported("an allocation in a captured stream"));
    }
    uint64_t address = 0;
    const CUresult result = Allocate(Allocation::Kind::kPooled, bytes, context, 0, pool, &address);
    if (result == CUDA_SUCCESS) *pointer = address;
    return result;
  });
}

CUresult GetPool(CUmemoryPool* pool, CUdevice device, bool standard) {
  return Call([&] {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    Defaults& defaults = TheDefaults();
    const std::lock_guard lock(defaults.mutex);
    *pool = standard ? defaults.standard : defaults.current;
    return CUDA_SUCCESS;
  });
}

// `body` takes MemoryPool&, whose mutex is held.
template <typename Body>
CUresult PoolCall(CUmemoryPool handle, const Body& body) noexcept {
  return Call([&]() -> CUresult {
    const auto pool = Pools::Get().Find(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool->mutex);
    return body(*pool);
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return AllocateFrom(CurrentPool(), pointer, bytes, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return AllocateFrom(pool, pointer, bytes, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return ContextCall([&](Context& context) {
    if (pointer == 0) return CUDA_SUCCESS;
    const auto allocation = FindAllocation(pointer);
    if (!allocation || allocation->address != pointer || allocation->on_host()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (IsCapturing(context, stream)) {
      return static_cast<CUresult>(NotSupported("a free in a captured stream"));
    }
    return Issue(context, stream, std::make_shared<FreeOperation>(pointer));
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return GetPool(pool, device, true);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return GetPool(pool, device, false);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return Call([&] {
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (Pools::Get().Find(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Defaults& defaults = TheDefaults();
    const std::lock_guard lock(defaults.mutex);
    defaults.current = pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  return Call([&] {
    if (pool == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!IsDevice(props->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    *pool = Pools::Get().Add(std::make_shared<MemoryPool>(*props));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return Call([&] {
    Defaults& defaults = TheDefaults();
    const std::lock_guard lock(defaults.mutex);
    if (pool == defaults.standard) return CUDA_ERROR_INVALID_VALUE;
    if (Pools::Get().Remove(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (defaults.current == pool) defaults.current = defaults.standard;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return PoolCall(handle, [](MemoryPool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* rights, size_t count) {
  return PoolCall(handle, [&](MemoryPool&) {
    if (rights == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (!IsDevice(rights[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* rights, CUmemoryPool handle, CUmemLocation* where) {
  return PoolCall(handle, [&](MemoryPool&) {
    if (rights == nullptr || where == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(where->id)) return CUDA_ERROR_INVALID_DEVICE;
    *rights = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return PoolCall(handle, [&](MemoryPool& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        pool.reuse_follow_event = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        pool.reuse_opportunistic = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool.reuse_internal = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool.release_threshold = *static_cast<cuuint64_t*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
        ResetHighOfPool(handle);
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return PoolCall(handle, [&](MemoryPool& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        *static_cast<int*>(value) = pool.reuse_follow_event;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        *static_cast<int*>(value) = pool.reuse_opportunistic;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *static_cast<int*>(value) = pool.reuse_internal;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *static_cast<cuuint64_t*>(value) = pool.release_threshold;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *static_cast<cuuint64_t*>(value) = BytesOfPool(handle).now;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *static_cast<cuuint64_t*>(value) = BytesOfPool(handle).high;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

}  // extern "C"
