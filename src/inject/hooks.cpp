// The interposed functions. Each is what the driver's own is, plus the little that tracing needs
// before or after it; a caller sees the driver's results only. They are reached by three roads: the
// program's PLT (these names), dlsym, and cuGetProcAddress (hooks.h).
//
// cuda.h renames functions to their newest versions; the names below are those that libcuda
// exports.
#include "inject/hooks.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "inject/contexts.h"
#include "inject/driver.h"
#include "inject/graph_hooks.h"
#include "inject/images.h"
#include "inject/launches.h"
#include "inject/real_function.h"
#include "inject/say.h"

#undef cuGetProcAddress
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxRelease

namespace iket::inject {
namespace {

constexpr char kRefused[] =
    "the driver refuses a patched code image; the program runs the original, which is not traced";

constexpr char kNotReady[] =
    "a patched code image cannot be made ready; the program runs the original, which is not traced";

// Loads the patched image, or the original where there is none, the driver does not take it or it
// cannot be armed (`add` says so; `unload` takes it back).
template <typename Load, typename Add, typename Unload, typename LoadOriginal>
CUresult LoadPatched(const std::shared_ptr<PatchedImage>& patched, const Load& load, const Add& add,
                     const Unload& unload, const LoadOriginal& load_original) noexcept {
  if (patched == nullptr) return load_original();
  const CUresult result = load(patched->pointer());
  if (result == CUDA_SUCCESS) {
    if (add()) {
      patched->jit->GiveBack();
      return result;
    }
    unload();
  }
  const CUresult second = load_original();
  if (second == CUDA_SUCCESS) Say(result == CUDA_SUCCESS ? kNotReady : kRefused);
  return second;
}

// A handle that the driver gave out for a kernel of this name in `code`, a library or module.
template <typename Code>
void Remember(const void* handle, Code code, const char* name) noexcept {
  uint32_t number = 0;
  if (FindKernel(code, name, &number)) {
    RememberKernel(handle, number);
  } else {
    RememberPlainKernel(handle);
  }
}

LaunchShape ShapeOf(std::string_view called, const CUlaunchConfig* config) noexcept {
  LaunchShape shape = inject::ShapeOf(config);
  shape.stream = StreamOf(called, shape.stream);
  return shape;
}

}  // namespace
}  // namespace iket::inject

using namespace iket::inject;  // NOLINT: the functions below are C functions of the global
                               // namespace

extern "C" {

// cuda.h declares these only under their older or newer names.
CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
CUresult cuCtxDestroy(CUcontext);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void**, void**);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**);

// --- code images -------------------------------------------------------------------------------

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_values, unsigned jit_count, CUlibraryOption* options,
                           void** values, unsigned count) {
  const auto real = IKET_REAL(cuLibraryLoadData);
  if (real == nullptr) return kMissing;
  const auto patched = Prepare(code, {.call = "cuLibraryLoadData",
                                      .library = true,
                                      .jit_count = jit_count,
                                      .jit_options = jit_options,
                                      .jit_values = jit_values});
  return LoadPatched(
      patched,
      [&](const void* image) {
        JitOptions::List& jit = patched->jit->load();
        return real(library, image, jit.options.data(), jit.values.data(), jit.count(), options,
                    values, count);
      },
      [&] { return AddLibrary(*library, patched); }, [&] { IKET_REAL(cuLibraryUnload)(*library); },
      [&] {
        return real(library, code, jit_options, jit_values, jit_count, options, values, count);
      });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                               void** jit_values, unsigned jit_count, CUlibraryOption* options,
                               void** values, unsigned count) {
  const auto real = IKET_REAL(cuLibraryLoadFromFile);
  const auto load_data = IKET_REAL(cuLibraryLoadData);
  if (real == nullptr || load_data == nullptr) return kMissing;
  const auto patched = PrepareFile(path, {.call = "cuLibraryLoadFromFile",
                                          .library = true,
                                          .jit_count = jit_count,
                                          .jit_options = jit_options,
                                          .jit_values = jit_values});
  return LoadPatched(
      patched,
      [&](const void* image) {
        JitOptions::List& jit = patched->jit->load();
        return load_data(library, image, jit.options.data(), jit.values.data(), jit.count(),
                         options, values, count);
      },
      [&] { return AddLibrary(*library, patched); }, [&] { IKET_REAL(cuLibraryUnload)(*library); },
      [&] {
        return real(library, path, jit_options, jit_values, jit_count, options, values, count);
      });
}

CUresult cuLibraryUnload(CUlibrary library) {
  const auto real = IKET_REAL(cuLibraryUnload);
  if (real == nullptr) return kMissing;
  const CUresult result = real(library);
  if (result == CUDA_SUCCESS) RemoveLibrary(library);
  return result;
}

// `load_patched` of `image`, or `load_original`, of `patched`.
#define IKET_LOAD_MODULE(load_patched, load_original)                                           \
  return LoadPatched(                                                                           \
      patched, [&](const void* image) { return load_patched; },                                 \
      [&] { return AddModule(*module, patched); }, [&] { IKET_REAL(cuModuleUnload)(*module); }, \
      [&] { return load_original; })

CUresult cuModuleLoadData(CUmodule* module, const void* code) {
  const auto real = IKET_REAL(cuModuleLoadData);
  if (real == nullptr) return kMissing;
  const auto patched = Prepare(code, {.call = "cuModuleLoadData"});
  IKET_LOAD_MODULE(real(module, image), real(module, code));
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned count,
                            CUjit_option* options, void** values) {
  const auto real = IKET_REAL(cuModuleLoadDataEx);
  if (real == nullptr) return kMissing;
  const auto patched = Prepare(code, {.call = "cuModuleLoadDataEx",
                                      .jit_count = count,
                                      .jit_options = options,
                                      .jit_values = values});
  const auto load = [&](const void* image) {
    JitOptions::List& jit = patched->jit->load();
    return real(module, image, jit.count(), jit.options.data(), jit.values.data());
  };
  IKET_LOAD_MODULE(load(image), real(module, code, count, options, values));
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* code) {
  const auto real = IKET_REAL(cuModuleLoadFatBinary);
  if (real == nullptr) return kMissing;
  const auto patched = Prepare(code, {.call = "cuModuleLoadFatBinary"});
  IKET_LOAD_MODULE(real(module, image), real(module, code));
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  const auto real = IKET_REAL(cuModuleLoad);
  const auto load_data = IKET_REAL(cuModuleLoadData);
  if (real == nullptr || load_data == nullptr) return kMissing;
  const auto patched = PrepareFile(path, {.call = "cuModuleLoad"});
  IKET_LOAD_MODULE(load_data(module, image), real(module, path));
}
#undef IKET_LOAD_MODULE

CUresult cuModuleUnload(CUmodule module) {
  const auto real = IKET_REAL(cuModuleUnload);
  if (real == nullptr) return kMissing;
  const CUresult result = real(module);
  if (result == CUDA_SUCCESS) RemoveModule(module);
  return result;
}

// --- handles of kernels ------------------------------------------------------------------------

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const auto real = IKET_REAL(cuModuleGetFunction);
  if (real == nullptr) return kMissing;
  const CUresult result = real(function, module, name);
  if (result == CUDA_SUCCESS) Remember(*function, module, name);
  return result;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const auto real = IKET_REAL(cuLibraryGetKernel);
  if (real == nullptr) return kMissing;
  const CUresult result = real(kernel, library, name);
  if (result == CUDA_SUCCESS) Remember(*kernel, library, name);
  return result;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const auto real = IKET_REAL(cuKernelGetFunction);
  if (real == nullptr) return kMissing;
  const CUresult result = real(function, kernel);
  if (result == CUDA_SUCCESS) RememberAs(*function, kernel);
  return result;
}

// --- launches ----------------------------------------------------------------------------------

#define IKET_LAUNCH_KERNEL(name)                                                              \
  CUresult name(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,        \
                CUstream stream, void** parameters, void** extra) {                           \
    static const auto real = IKET_REAL(name);                                                 \
    if (real == nullptr) return kMissing;                                                     \
    const Launching launching = BeforeLaunch(function, {.grid = {grid_x, grid_y, grid_z},     \
                                                        .block = {block_x, block_y, block_z}, \
                                                        .dynamic_shared_bytes = shared,       \
                                                        .stream = StreamOf(#name, stream)});  \
    if (launching.result != CUDA_SUCCESS) return launching.result;                            \
    const CUresult result = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, \
                                 shared, stream, parameters, extra);                          \
    AfterLaunch(launching.entry, result);                                                     \
    return result;                                                                            \
  }
IKET_LAUNCH_KERNEL(cuLaunchKernel)
IKET_LAUNCH_KERNEL(cuLaunchKernel_ptsz)
#undef IKET_LAUNCH_KERNEL

#define IKET_LAUNCH_KERNEL_EX(name)                                                   \
  CUresult name(const CUlaunchConfig* config, CUfunction function, void** parameters, \
                void** extra) {                                                       \
    static const auto real = IKET_REAL(name);                                         \
    if (real == nullptr) return kMissing;                                             \
    const Launching launching = BeforeLaunch(function, ShapeOf(#name, config));       \
    if (launching.result != CUDA_SUCCESS) return launching.result;                    \
    const CUresult result = real(config, function, parameters, extra);                \
    AfterLaunch(launching.entry, result);                                             \
    return result;                                                                    \
  }
IKET_LAUNCH_KERNEL_EX(cuLaunchKernelEx)
IKET_LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz)
#undef IKET_LAUNCH_KERNEL_EX

#define IKET_LAUNCH_COOPERATIVE(name)                                                         \
  CUresult name(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,        \
                CUstream stream, void** parameters) {                                         \
    static const auto real = IKET_REAL(name);                                                 \
    if (real == nullptr) return kMissing;                                                     \
    const Launching launching =                                                               \
        BeforeLaunch(function, {.grid = {grid_x, grid_y, grid_z},                             \
                                .block = {block_x, block_y, block_z},                         \
                                .dynamic_shared_bytes = shared,                               \
                                .stream = StreamOf(#name, stream),                            \
                                .flags = iket::session::kLaunchCooperative});                 \
    if (launching.result != CUDA_SUCCESS) return launching.result;                            \
    const CUresult result = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, \
                                 shared, stream, parameters);                                 \
    AfterLaunch(launching.entry, result);                                                     \
    return result;                                                                            \
  }
IKET_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel)
IKET_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
#undef IKET_LAUNCH_COOPERATIVE

// --- ends of contexts --------------------------------------------------------------------------

#define IKET_CONTEXT_END(name, type, notify) \
  CUresult name(type which) {                \
    const auto real = IKET_REAL(name);       \
    if (real == nullptr) return kMissing;    \
    notify(which);                           \
    return real(which);                      \
  }
IKET_CONTEXT_END(cuCtxDestroy, CUcontext, ContextEnds)
IKET_CONTEXT_END(cuCtxDestroy_v2, CUcontext, ContextEnds)
IKET_CONTEXT_END(cuDevicePrimaryCtxReset, CUdevice, DeviceContextEnds)
IKET_CONTEXT_END(cuDevicePrimaryCtxReset_v2, CUdevice, DeviceContextEnds)
#undef IKET_CONTEXT_END

// --- looking functions up ----------------------------------------------------------------------

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  static const auto kReal = IKET_REAL(cuGetProcAddress);
  if (kReal == nullptr) return kMissing;
  const CUresult result = kReal(name, function, version, flags);
  if (result == CUDA_SUCCESS && function != nullptr && *function != nullptr) {
    if (void* hook = HookByProcAddress(name, version, flags)) *function = hook;
  }
  return result;
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  static const auto kReal = IKET_REAL(cuGetProcAddress_v2);
  if (kReal == nullptr) return kMissing;
  const CUresult result = kReal(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != nullptr && *function != nullptr) {
    if (void* hook = HookByProcAddress(name, version, flags)) *function = hook;
  }
  return result;
}

}  // extern "C"

namespace iket::inject {
namespace {

struct Hook {
  const char* base_name;  // as asked of cuGetProcAddress
  const char* exported;   // as libcuda exports it
  void* function;
  int since;  // least cudaVersion for which this is the answer
  bool per_thread_stream;
};

#define IKET_HOOK(base, name, since, per_thread) \
  {#base, #name, reinterpret_cast<void*>(&::name), since, per_thread}

// For one base name and kind of stream, the last row whose `since` is not above the asked version.
const Hook kHooks[] = {
    IKET_HOOK(cuGetProcAddress, cuGetProcAddress, 11030, false),
    IKET_HOOK(cuGetProcAddress, cuGetProcAddress_v2, 12000, false),
    IKET_HOOK(cuModuleLoad, cuModuleLoad, 2000, false),
    IKET_HOOK(cuModuleLoadData, cuModuleLoadData, 2000, false),
    IKET_HOOK(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, false),
    IKET_HOOK(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, false),
    IKET_HOOK(cuModuleUnload, cuModuleUnload, 2000, false),
    IKET_HOOK(cuModuleGetFunction, cuModuleGetFunction, 2000, false),
    IKET_HOOK(cuLibraryLoadData, cuLibraryLoadData, 12000, false),
    IKET_HOOK(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, false),
    IKET_HOOK(cuLibraryUnload, cuLibraryUnload, 12000, false),
    IKET_HOOK(cuLibraryGetKernel, cuLibraryGetKernel, 12000, false),
    IKET_HOOK(cuKernelGetFunction, cuKernelGetFunction, 12000, false),
    IKET_HOOK(cuLaunchKernel, cuLaunchKernel, 4000, false),
    IKET_HOOK(cuLaunchKernel, cuLaunchKernel_ptsz, 7000, true),
    IKET_HOOK(cuLaunchKernelEx, cuLaunchKernelEx, 11060, false),
    IKET_HOOK(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 11060, true),
    IKET_HOOK(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, false),
    IKET_HOOK(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 9000, true),
    IKET_HOOK(cuStreamBeginCapture, cuStreamBeginCapture, 10000, false),
    IKET_HOOK(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, 10000, true),
    IKET_HOOK(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, false),
    IKET_HOOK(cuStreamBeginCapture, cuStreamBeginCapture_v2_ptsz, 10010, true),
    IKET_HOOK(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, false),
    IKET_HOOK(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, 12030, true),
    IKET_HOOK(cuGraphInstantiate, cuGraphInstantiate, 10000, false),
    IKET_HOOK(cuGraphInstantiate, cuGraphInstantiate_v2, 11000, false),
    IKET_HOOK(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000, false),
    IKET_HOOK(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, false),
    IKET_HOOK(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, false),
    IKET_HOOK(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, 12000, true),
    IKET_HOOK(cuGraphAddNode, cuGraphAddNode, 12020, false),
    IKET_HOOK(cuGraphAddNode, cuGraphAddNode_v2, 12030, false),
    IKET_HOOK(cuGraphExecUpdate, cuGraphExecUpdate, 10020, false),
    IKET_HOOK(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000, false),
    IKET_HOOK(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, false),
    IKET_HOOK(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, 12000, false),
    IKET_HOOK(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, false),
    IKET_HOOK(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, false),
    IKET_HOOK(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, false),
    IKET_HOOK(cuGraphExecDestroy, cuGraphExecDestroy, 10000, false),
    IKET_HOOK(cuGraphLaunch, cuGraphLaunch, 10000, false),
    IKET_HOOK(cuGraphLaunch, cuGraphLaunch_ptsz, 10000, true),
    IKET_HOOK(cuCtxDestroy, cuCtxDestroy, 2000, false),
    IKET_HOOK(cuCtxDestroy, cuCtxDestroy_v2, 4000, false),
    IKET_HOOK(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, false),
    IKET_HOOK(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, false),
};
#undef IKET_HOOK

}  // namespace

void* HookByExport(const char* exported_name) noexcept {
  for (const Hook& hook : kHooks) {
    if (std::strcmp(hook.exported, exported_name) == 0) return hook.function;
  }
  return nullptr;
}

void* HookByProcAddress(const char* name, int cuda_version, uint64_t flags) noexcept {
  if (name == nullptr) return nullptr;
  const bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  void* answer = nullptr;
  void* legacy = nullptr;
  for (const Hook& hook : kHooks) {
    if (std::strcmp(hook.base_name, name) != 0 || hook.since > cuda_version) continue;
    if (hook.per_thread_stream == wants_per_thread) answer = hook.function;
    if (!hook.per_thread_stream) legacy = hook.function;
  }
  // Functions without a per-thread twin answer either way.
  return answer != nullptr ? answer : legacy;
}

}  // namespace iket::inject
