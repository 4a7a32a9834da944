// Kernels: their attributes, their parameters, and how many of their CTAs fit on a SM.
#include <algorithm>

#include "simdriver/call.h"
#include "simdriver/device.h"
#include "simdriver/launch.h"
#include "simdriver/module.h"

namespace iket::simdriver {
namespace {

// `body` takes Function&.
template <typename Body>
CUresult FunctionCall(CUfunction handle, const Body& body) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    std::shared_ptr<Function> function;
    const CUresult result = FindFunction(context, handle, &function);
    return result == CUDA_SUCCESS ? body(*function) : result;
  });
}

CUresult Get(Function& function, CUfunction_attribute attribute, int* value) {
  const sim::Kernel& kernel = *function.kernel;
  FunctionSettings& settings = *function.settings;
  const auto number = [&](uint32_t n) {
    *value = static_cast<int>(n);
    return CUDA_SUCCESS;
  };
  const std::lock_guard lock(settings.mutex);
  const bool set = settings.cluster[0] != 0;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return number(MaxThreads(kernel));
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return number(kernel.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return number(kernel.constant_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return number(kernel.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return number(kernel.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return number(Model().compute_major * 10 + Model().compute_minor);
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return number(0);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return number(MaxDynamicShared(kernel, settings.max_dynamic_shared));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = settings.carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return number(0);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return number(set ? settings.cluster[0] : kernel.required_cluster.x);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return number(set ? settings.cluster[1] : kernel.required_cluster.y);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return number(set ? settings.cluster[2] : kernel.required_cluster.z);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = settings.nonportable_cluster;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = settings.cluster_policy;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Set(Function& function, CUfunction_attribute attribute, int value) {
  FunctionSettings& settings = *function.settings;
  const std::lock_guard lock(settings.mutex);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int64_t most =
          int64_t{Model().shared_bytes_per_cta_optin} - int64_t{function.kernel->static_shared};
      if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
      settings.max_dynamic_shared = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings.carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      if (value <= 0 || function.kernel->required_cluster.x != 0) return CUDA_ERROR_INVALID_VALUE;
      settings.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
      for (int& extent : settings.cluster) extent = std::max(extent, 1);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      settings.nonportable_cluster = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      settings.cluster_policy = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

int CtasPerSm(const Function& function, uint64_t threads, size_t dynamic) {
  if (dynamic > Model().shared_bytes_per_sm) return 0;
  return static_cast<int>(
      Processors().MaxCtasPerSm(*function.kernel, threads, static_cast<uint32_t>(dynamic)));
}

CUresult Occupancy(int* ctas, CUfunction handle, int threads, size_t dynamic) {
  return FunctionCall(handle, [&](Function& function) {
    if (ctas == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *ctas = static_cast<uint32_t>(threads) > MaxThreads(*function.kernel)
                ? 0
                : CtasPerSm(function, static_cast<uint64_t>(threads), dynamic);
    return CUDA_SUCCESS;
  });
}

// The size of CTA with which the most threads fit on a SM; the largest of those.
CUresult BestBlock(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                   size_t dynamic, int limit) {
  return FunctionCall(handle, [&](Function& function) {
    if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
    const int most = static_cast<int>(MaxThreads(*function.kernel));
    const int start = limit == 0 ? most : std::min(most, limit);
    int best_threads = 0;
    *grid = *block = 0;
    for (int threads = start; threads > 0; threads = (threads - 1) / 32 * 32) {
      const size_t shared = shared_of != nullptr ? shared_of(threads) : dynamic;
      const int ctas = CtasPerSm(function, static_cast<uint64_t>(threads), shared);
      if (ctas * threads <= best_threads) continue;
      best_threads = ctas * threads;
      *block = threads;
      *grid = ctas * static_cast<int>(Model().sm_count);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return FunctionCall(handle, [&](Function& function) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : Get(function, attribute, value);
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return FunctionCall(handle, [&](Function& function) { return Set(function, attribute, value); });
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return FunctionCall(handle, [&](Function& function) {
    const std::lock_guard lock(function.settings->mutex);
    function.settings->cache_config = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  return FunctionCall(handle, [](Function&) { return CUDA_SUCCESS; });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return FunctionCall(handle, [&](Function& function) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = Modules::HandleOf(function.module.lock().get());
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  return FunctionCall(handle, [&](Function& function) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function.kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  return FunctionCall(handle, [&](Function& function) {
    const auto& params = function.kernel->params;
    if (offset == nullptr || index >= params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = params[index].offset;
    if (size != nullptr) *size = params[index].size;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return FunctionCall(handle, [&](Function&) {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncLoad(CUfunction handle) {
  return FunctionCall(handle, [](Function&) { return CUDA_SUCCESS; });
}

// --- occupancy -----------------------------------------------------------------------------------

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, CUfunction function, int threads,
                                                     size_t dynamic) {
  return Occupancy(ctas, function, threads, dynamic);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* ctas, CUfunction function,
                                                              int threads, size_t dynamic,
                                                              unsigned) {
  return Occupancy(ctas, function, threads, dynamic);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t dynamic, int limit) {
  return BestBlock(grid, block, function, shared_of, dynamic, limit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, size_t dynamic,
                                                   int limit, unsigned) {
  return BestBlock(grid, block, function, shared_of, dynamic, limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int ctas,
                                                 int threads) {
  return FunctionCall(handle, [&](Function& function) {
    if (bytes == nullptr || ctas <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (CtasPerSm(function, static_cast<uint64_t>(threads), 0) < ctas) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    size_t low = 0;
    size_t high = Model().shared_bytes_per_cta_optin;
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      const bool fits = CtasPerSm(function, static_cast<uint64_t>(threads), middle) >= ctas;
      fits ? low = middle : high = middle - 1;
    }
    *bytes = low;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
