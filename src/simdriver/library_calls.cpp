// Libraries and their kernels: code of the process, which comes into a context when it is used.
#include "simdriver/call.h"
#include "simdriver/device.h"
#include "simdriver/module.h"

namespace iket::simdriver {
namespace {

// A library's image is checked when it is loaded, where a context is current; else when it is used.
CUresult Add(std::vector<std::byte> cubin, CUlibrary* library) {
  auto added = std::make_shared<Library>(std::move(cubin));
  if (const auto context = CurrentContext(); context != nullptr && !context->destroyed) {
    std::shared_ptr<Module> module;
    const CUresult result = added->ModuleIn(*context, &module);
    if (result != CUDA_SUCCESS) return result;
  }
  *library = Libraries::Get().Add(std::move(added));
  return CUDA_SUCCESS;
}

// `body` takes the library's module in the current context.
template <typename Body>
CUresult LibraryCall(CUlibrary handle, const Body& body) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto library = Libraries::Get().Find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<Module> module;
    const CUresult result = library->ModuleIn(context, &module);
    if (result != CUDA_SUCCESS) return result;
    return body(*module);
  });
}

template <typename Body>
CUresult KernelCall(CUkernel handle, const Body& body) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto kernel = LibraryKernels::Get().Find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(context, *kernel);
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  return Call([&] {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> cubin;
    const CUresult result = FindCubin("cuLibraryLoadData", code, &cubin);
    return result == CUDA_SUCCESS ? Add(std::move(cubin), library) : result;
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                               unsigned, CUlibraryOption*, void**, unsigned) {
  return Call([&] {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> cubin;
    const CUresult result = FindCubinInFile("cuLibraryLoadFromFile", path, &cubin);
    return result == CUDA_SUCCESS ? Add(std::move(cubin), library) : result;
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  return Call([&] {
    if (Libraries::Get().Find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto context = CurrentContext()) context->Synchronize();
    Libraries::Get().Remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
  return LibraryCall(handle, [&](Module& loaded) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = Modules::HandleOf(&loaded);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return Call([&] {
    if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto library = Libraries::Get().Find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = library->FindKernel(name);
    if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
    *kernel = LibraryKernels::HandleOf(found.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  return Call([&] {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto library = Libraries::Get().Find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned>(library->kernel_names().size());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary handle) {
  return Call([&] {
    if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto library = Libraries::Get().Find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    unsigned i = 0;
    for (const std::string& name : library->kernel_names()) {
      if (i == room) break;
      kernels[i++] = LibraryKernels::HandleOf(library->FindKernel(name).get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                            const char* name) {
  return LibraryCall(handle,
                     [&](Module& module) { return module.GetGlobal(name, address, bytes); });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  return KernelCall(handle, [&](Context& context, LibraryKernel&) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Function> found;
    const CUresult result = FindFunction(context, reinterpret_cast<CUfunction>(handle), &found);
    if (result == CUDA_SUCCESS) *function = Functions::HandleOf(found.get());
    return result;
  });
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  return KernelCall(handle, [&](Context&, LibraryKernel& kernel) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *library = Libraries::HandleOf(kernel.library.lock().get());
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  return KernelCall(handle, [&](Context&, LibraryKernel& kernel) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(handle));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(handle), attribute, value);
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return cuFuncSetCacheConfig(reinterpret_cast<CUfunction>(handle), config);
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(handle), index, offset, size);
}

}  // extern "C"
