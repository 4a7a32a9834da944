// Modules: code in the current context.
#include <cstring>

#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/module.h"

namespace iket::simdriver {
namespace {

// `find` fetches the cubin.
template <typename Find>
CUresult Load(CUmodule* module, const char* call, const Find& find) noexcept {
  return ContextCall([&](Context& context) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    std::vector<std::byte> cubin;
    std::shared_ptr<sim::Image> loaded;
    CUresult result = find(&cubin);
    if (result == CUDA_SUCCESS) result = LoadImage(call, cubin, &loaded);
    if (result != CUDA_SUCCESS) return result;
    *module = Modules::Get().Add(std::make_shared<Module>(std::move(loaded), context.id));
    return CUDA_SUCCESS;
  });
}

CUresult LoadData(CUmodule* module, const char* call, const void* image) {
  return Load(module, call, [&](auto* cubin) { return FindCubin(call, image, cubin); });
}

// `body` takes Module&.
template <typename Body>
CUresult ModuleCall(CUmodule handle, const Body& body) noexcept {
  return ContextCall([&](Context&) -> CUresult {
    const auto module = Modules::Get().Find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(*module);
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return LoadData(module, "cuModuleLoadData", image);
}

// Options of a compiler that is not needed for machine code.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return LoadData(module, "cuModuleLoadDataEx", image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return LoadData(module, "cuModuleLoadFatBinary", image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return Load(module, "cuModuleLoad",
              [&](auto* cubin) { return FindCubinInFile("cuModuleLoad", path, cubin); });
}

CUresult cuModuleUnload(CUmodule handle) {
  return ContextCall([&](Context& context) {
    if (Modules::Get().Find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    context.Synchronize();
    Modules::Get().Remove(handle);
    return context.error();
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return Call([&] {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return ModuleCall(handle, [&](Module& module) {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = module.FindFunction(name);
    if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
    *function = Functions::HandleOf(found.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return ModuleCall(handle, [&](Module& module) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module.image()->kernels().size());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule handle) {
  return ModuleCall(handle, [&](Module& module) {
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned i = 0;
    for (const auto& kernel : module.image()->kernels()) {
      if (i == room) break;
      functions[i++] = Functions::HandleOf(module.FindFunction(kernel.name).get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
  return ModuleCall(handle, [&](Module& module) { return module.GetGlobal(name, address, bytes); });
}

}  // extern "C"
