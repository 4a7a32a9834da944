// Contexts: primary and created, the stack of each thread, limits.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/device.h"

namespace iket::simdriver {
namespace {

constexpr unsigned kContextFlags = CU_CTX_FLAGS_MASK;

CUresult Create(CUcontext* context, unsigned flags, CUdevice device) {
  return Call([&] {
    if (context == nullptr || (flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto created = std::make_shared<Context>(device, flags, false);
    *context = Contexts::Get().Add(created);
    PushContext(std::move(created));
    return CUDA_SUCCESS;
  });
}

// The context of a handle, where null is the current one.
std::shared_ptr<Context> FindContext(CUcontext handle) {
  return handle == nullptr ? CurrentContext() : Contexts::Get().Find(handle);
}

CUresult Destroy(CUcontext handle) {
  return Call([&] {
    const auto context = Contexts::Get().Find(handle);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (CurrentContext() == context) PopContext();
    DestroyContext(context);
    return CUDA_SUCCESS;
  });
}

CUresult Push(CUcontext handle) {
  return Call([&] {
    auto context = Contexts::Get().Find(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    PushContext(std::move(context));
    return CUDA_SUCCESS;
  });
}

CUresult Pop(CUcontext* handle) {
  return Call([&] {
    const auto context = PopContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (handle != nullptr) *handle = Contexts::HandleOf(context.get());
    return CUDA_SUCCESS;
  });
}

CUresult Release(CUdevice device) {
  return Call(
      [&] { return IsDevice(device) ? ReleasePrimaryContext() : CUDA_ERROR_INVALID_DEVICE; });
}

CUresult Reset(CUdevice device) {
  return Call([&] {
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    ResetPrimaryContext();
    return CUDA_SUCCESS;
  });
}

CUresult SetFlags(CUdevice device, unsigned flags) {
  return Call([&] {
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    SetPrimaryContextFlags(flags);
    return CUDA_SUCCESS;
  });
}

CUresult Synchronize(CUcontext handle) {
  return ContextCall([&](Context&) {
    const auto context = FindContext(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    context->Synchronize();
    return context->error();
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

// --- primary contexts ----------------------------------------------------------------------------

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return Call([&] {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = Contexts::HandleOf(RetainPrimaryContext().get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return Release(device); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return Release(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return Reset(device); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return Reset(device); }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned set) { return SetFlags(device, set); }
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned set) {
  return SetFlags(device, set);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* state, int* active) {
  return Call([&] {
    if (state == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    const PrimaryState primary = PrimaryContextState();
    *state = primary.flags;
    *active = primary.active ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

// --- created contexts ----------------------------------------------------------------------------

CUresult cuCtxCreate_v2(CUcontext* context, unsigned set, CUdevice device) {
  return Create(context, set, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned set,
                        CUdevice device) {
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(context, set, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned set,
                        CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return Create(context, set, device);
}

CUresult cuCtxDestroy(CUcontext context) { return Destroy(context); }
CUresult cuCtxDestroy_v2(CUcontext context) { return Destroy(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return Push(context); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return Push(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return Pop(context); }
CUresult cuCtxPopCurrent_v2(CUcontext* context) { return Pop(context); }

CUresult cuCtxSetCurrent(CUcontext handle) {
  return Call([&] {
    std::shared_ptr<Context> context;
    if (handle != nullptr) {
      context = Contexts::Get().Find(handle);
      if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    }
    SetCurrentContext(std::move(context));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  return Call([&] {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto context = CurrentContext();
    *handle = context == nullptr ? nullptr : Contexts::HandleOf(context.get());
    return CUDA_SUCCESS;
  });
}

// --- what a context knows of itself: also after an error -----------------------------------------

CUresult cuCtxGetDevice(CUdevice* device) {
  return Call([&] {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto context = CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  return Call([&] {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto context = FindContext(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return Call([&] {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto context = FindContext(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned* set) {
  return ContextCall([&](Context& context) {
    if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *set = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned set) {
  return ContextCall([&](Context& context) {
    if ((set & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    context.flags = set;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return Call([&] {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (FindContext(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;  // what the driver has said since CUDA 3.2
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() { return Synchronize(nullptr); }
CUresult cuCtxSynchronize_v2(CUcontext context) { return Synchronize(context); }

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return ContextCall([&](Context&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return ContextCall([&](Context& context) { return context.limits->Get(limit, value); });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return ContextCall([&](Context& context) { return context.limits->Set(limit, value); });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return ContextCall([&](Context& context) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.mutex);
    *config = context.cache_config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return ContextCall([&](Context& context) {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(context.mutex);
    context.cache_config = config;
    return CUDA_SUCCESS;
  });
}

// Banks of shared memory have had one width since sm_50.
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return ContextCall([&](Context&) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  return ContextCall([](Context&) { return CUDA_SUCCESS; });
}

CUresult cuCtxResetPersistingL2Cache() {
  return ContextCall([](Context&) { return CUDA_SUCCESS; });
}

}  // extern "C"
