// Memory: on the device, on the host for both, managed.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/memory.h"

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

namespace iket::simdriver {
namespace {

constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
constexpr size_t kPitchAlignment = 512;

CUresult AllocatePinned(void** pointer, size_t bytes, unsigned flags) {
  return ContextCall([&](Context& context) {
    if (pointer == nullptr || (flags & ~kHostAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    uint64_t address = 0;
    const CUresult result =
        Allocate(Allocation::Kind::kHost, bytes, context, flags, nullptr, &address);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

CUresult Register(void* pointer, size_t bytes, unsigned flags) {
  return ContextCall([&](Context& context) {
    if ((flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_PERMITTED;
    return RegisterHostMemory(pointer, bytes, context, flags);
  });
}

// Frees what began at an address, if it is of one of these kinds, after the context's work.
template <typename IsRight>
CUresult Free(uint64_t address, const IsRight& is_right) {
  return ContextCall([&](Context& context) {
    if (address == 0) return CUDA_SUCCESS;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    const auto allocation = FindAllocation(address);
    if (!allocation || allocation->address != address || !is_right(*allocation)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    context.Synchronize();
    if (context.error() != CUDA_SUCCESS) return context.error();
    return FreeAllocation(address);
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return ContextCall([&](Context&) {
    if (free_bytes != nullptr) *free_bytes = Model().memory_bytes - DeviceBytesInUse();
    if (total != nullptr) *total = Model().memory_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return ContextCall([&](Context& context) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    uint64_t address = 0;
    const CUresult result =
        Allocate(Allocation::Kind::kDevice, bytes, context, 0, nullptr, &address);
    if (result == CUDA_SUCCESS) *pointer = address;
    return result;
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned element) {
  if (pitch == nullptr || (element != 4 && element != 8 && element != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (width == 0 || height == 0 || width > SIZE_MAX / 2) return CUDA_ERROR_INVALID_VALUE;
  const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
  *pitch = row;
  return cuMemAlloc_v2(pointer, row * height);
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned attach) {
  return ContextCall([&](Context& context) {
    if (pointer == nullptr || (attach != CU_MEM_ATTACH_GLOBAL && attach != CU_MEM_ATTACH_HOST)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    uint64_t address = 0;
    const CUresult result =
        Allocate(Allocation::Kind::kManaged, bytes, context, attach, nullptr, &address);
    if (result == CUDA_SUCCESS) *pointer = address;
    return result;
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return Free(pointer, [](const Allocation& allocation) { return !allocation.on_host(); });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
  return ContextCall([&](Context&) {
    if (const auto allocation = FindAllocation(pointer)) {
      if (base != nullptr) *base = allocation->address;
      if (size != nullptr) *size = allocation->size;
      return CUDA_SUCCESS;
    }
    // A variable of a module, or a mapped range: what is reserved there.
    const auto range = Addresses().FindReservation(pointer);
    if (range.size == 0) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = range.address;
    if (size != nullptr) *size = range.size;
    return CUDA_SUCCESS;
  });
}

// --- host memory ---------------------------------------------------------------------------------

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return AllocatePinned(pointer, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned options) {
  return AllocatePinned(pointer, bytes, options);
}

CUresult cuMemFreeHost(void* pointer) {
  return Free(reinterpret_cast<uint64_t>(pointer), [](const Allocation& allocation) {
    return allocation.kind == Allocation::Kind::kHost;
  });
}

CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned options) {
  return Register(pointer, bytes, options);
}
CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned options) {
  return Register(pointer, bytes, options);
}

CUresult cuMemHostUnregister(void* pointer) {
  const CUresult result =
      Free(reinterpret_cast<uint64_t>(pointer), [](const Allocation& allocation) {
        return allocation.kind == Allocation::Kind::kRegistered;
      });
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned options) {
  return ContextCall([&](Context&) {
    if (device == nullptr || options != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = FindAllocation(reinterpret_cast<uint64_t>(pointer));
    if (!allocation || !allocation->on_host()) return CUDA_ERROR_INVALID_VALUE;
    *device = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned* options, void* pointer) {
  return ContextCall([&](Context&) {
    if (options == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = FindAllocation(reinterpret_cast<uint64_t>(pointer));
    if (!allocation || allocation->kind != Allocation::Kind::kHost) return CUDA_ERROR_INVALID_VALUE;
    *options = allocation->flags;
    return CUDA_SUCCESS;
  });
}

// --- managed memory: one place, so there is nothing to advise or to move -------------------------

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise, CUmemLocation) {
  return ContextCall([&](Context&) {
    const auto allocation = FindAllocation(pointer);
    const bool managed = allocation && allocation->kind == Allocation::Kind::kManaged &&
                         bytes <= allocation->size - (pointer - allocation->address);
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation, unsigned,
                               CUstream stream) {
  return ContextCall([&](Context& context) {
    const auto allocation = FindAllocation(pointer);
    const bool managed = allocation && allocation->kind == Allocation::Kind::kManaged &&
                         bytes <= allocation->size - (pointer - allocation->address);
    if (!managed) return CUDA_ERROR_INVALID_VALUE;
    return Issue(context, stream, std::make_shared<EmptyOperation>());
  });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t, unsigned) {
  return ContextCall([&](Context& context) {
    const auto allocation = FindAllocation(pointer);
    if (!allocation || allocation->kind != Allocation::Kind::kManaged) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Issue(context, stream, std::make_shared<EmptyOperation>());
  });
}

}  // extern "C"
// NOLINTEND(performance-no-int-to-ptr)
