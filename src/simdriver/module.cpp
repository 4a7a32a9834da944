#include "simdriver/module.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cubin/fatbin.h"
#include "cubin/image.h"
#include "cubin/image_kind.h"
#include "cubin/kernels.h"
#include "simdriver/device.h"
#include "simdriver/say.h"

namespace iket::simdriver {
namespace {

constexpr int kSm = 90;
constexpr char kBuildFor[] = "the software device runs sm_90: build with -arch=sm_90";

void Refuse(const char* call, const std::string& why) { Say(std::string(call) + ": " + why); }

UntrustedBytes View(const std::vector<std::byte>& bytes) {
  return UntrustedBytes(bytes.data(), bytes.size());
}

CUresult CheckCubin(const char* call, UntrustedBytes bytes, std::vector<std::byte>* cubin) {
  const auto parsed = cubin::Image::Parse(bytes);
  if (!parsed) {
    Refuse(call, parsed.error().message);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (parsed->sm() != kSm) {
    Refuse(call, "the cubin is for " + parsed->ArchName() + "; " + kBuildFor);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  cubin->assign(bytes.span().begin(), bytes.span().end());
  return CUDA_SUCCESS;
}

CUresult RefusePtx(const char* call) {
  Refuse(call,
         std::string("the code is PTX only, and there is no PTX compiler here; ") + kBuildFor);
  return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

CUresult FindInFatbin(const char* call, UntrustedBytes bytes, std::vector<std::byte>* cubin) {
  const auto fatbin = cubin::ReadFatbin(bytes);
  if (!fatbin) {
    Refuse(call, fatbin.error().message);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  bool has_ptx = false;
  std::string found;
  for (const cubin::FatbinEntry& entry : fatbin->entries) {
    has_ptx = has_ptx || entry.kind == cubin::EntryKind::kPtx;
    if (entry.kind != cubin::EntryKind::kElf) continue;
    if (entry.sm != kSm) {
      found += (found.empty() ? "" : ", ") + entry.ArchName();
      continue;
    }
    const auto code = cubin::Decompress(entry);
    if (!code) {
      Refuse(call, code.error().message);
      return CUDA_ERROR_INVALID_IMAGE;
    }
    return CheckCubin(call, View(*code), cubin);
  }
  if (has_ptx) return RefusePtx(call);
  Refuse(call,
         "the fatbin holds code for " + (found.empty() ? "no GPU" : found) + "; " + kBuildFor);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult FindInBytes(const char* call, cubin::ImageKind kind, UntrustedBytes bytes,
                     std::vector<std::byte>* cubin) {
  switch (kind) {
    case cubin::ImageKind::kElf:
      return CheckCubin(call, bytes, cubin);
    case cubin::ImageKind::kFatbin:
      return FindInFatbin(call, bytes, cubin);
    case cubin::ImageKind::kPtx:
      return RefusePtx(call);
    default:
      Refuse(call, "this is no cubin, no fatbin and no PTX");
      return CUDA_ERROR_INVALID_IMAGE;
  }
}

}  // namespace

CUresult FindCubin(const char* call, const void* image, std::vector<std::byte>* cubin) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = cubin::UntrustedImageAt(image);
  if (!found) {
    Refuse(call, found.error().message);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  return FindInBytes(call, found->kind, found->bytes, cubin);
}

CUresult FindCubinInFile(const char* call, const char* path, std::vector<std::byte>* cubin) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::vector<std::byte> bytes;
  std::byte buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    bytes.insert(bytes.end(), buffer, buffer + got);
  }
  std::fclose(file);
  return FindInBytes(call, cubin::KindOf(View(bytes)), View(bytes), cubin);
}

CUresult LoadImage(const char* call, const std::vector<std::byte>& cubin,
                   std::shared_ptr<sim::Image>* image) {
  auto loaded = sim::Image::Load(View(cubin), Addresses());
  if (!loaded) {
    Refuse(call, loaded.error().message);
    return loaded.error().kind == ErrorKind::kSystem ? CUDA_ERROR_OUT_OF_MEMORY
                                                     : CUDA_ERROR_INVALID_IMAGE;
  }
  *image = std::move(*loaded);
  return CUDA_SUCCESS;
}

Module::Module(std::shared_ptr<sim::Image> image, uint64_t context_id)
    : image_(std::move(image)), context_id_(context_id) {}

Module::~Module() {
  for (const auto& [name, function] : functions_) {
    Functions::Get().Remove(Functions::HandleOf(function.get()));
  }
}

CUresult Module::GetGlobal(const char* name, CUdeviceptr* address, size_t* bytes) const {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto global = image_->FindGlobal(name);
  if (!global) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = global->address;
  if (bytes != nullptr) *bytes = global->size;
  return CUDA_SUCCESS;
}

std::shared_ptr<Function> Module::FindFunction(std::string_view name,
                                               std::shared_ptr<FunctionSettings> settings) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  const sim::Kernel* kernel = image_->FindKernel(name);
  if (kernel == nullptr) return nullptr;
  auto function = std::make_shared<Function>();
  function->kernel = kernel;
  function->image = image_;
  function->module = weak_from_this();
  function->settings =
      settings != nullptr ? std::move(settings) : std::make_shared<FunctionSettings>();
  functions_.emplace(std::string(name), function);
  Functions::Get().Add(function);
  return function;
}

Library::Library(std::vector<std::byte> cubin) : cubin_(std::move(cubin)) {
  const auto image = cubin::Image::Parse(View(cubin_));
  if (!image) return;
  const auto functions = cubin::Functions(*image);
  if (!functions) return;
  for (const cubin::Function& function : *functions) {
    if (function.is_kernel) names_.emplace_back(function.name);
  }
}

Library::~Library() {
  for (const auto& [id, module] : modules_) {
    Modules::Get().Remove(Modules::HandleOf(module.get()));
  }
  for (const auto& [name, kernel] : kernels_) {
    LibraryKernels::Get().Remove(LibraryKernels::HandleOf(kernel.get()));
  }
}

CUresult Library::ModuleIn(const Context& context, std::shared_ptr<Module>* module) {
  const std::lock_guard lock(mutex_);
  auto& loaded = modules_[context.id];
  if (loaded == nullptr) {
    std::shared_ptr<sim::Image> image;
    const CUresult result = LoadImage("cuLibraryLoadData", cubin_, &image);
    if (result != CUDA_SUCCESS) return result;
    loaded = std::make_shared<Module>(std::move(image), context.id);
    Modules::Get().Add(loaded);
  }
  *module = loaded;
  return CUDA_SUCCESS;
}

void Library::ForgetContext(const Context& context) {
  const std::lock_guard lock(mutex_);
  modules_.erase(context.id);
}

std::shared_ptr<LibraryKernel> Library::FindKernel(std::string_view name) {
  if (std::find(names_.begin(), names_.end(), name) == names_.end()) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& kernel = kernels_[std::string(name)];
  if (kernel == nullptr) {
    kernel = std::make_shared<LibraryKernel>();
    kernel->name = name;
    kernel->library = weak_from_this();
    LibraryKernels::Get().Add(kernel);
  }
  return kernel;
}

CUresult FindFunction(const Context& context, CUfunction handle,
                      std::shared_ptr<Function>* function) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = Functions::Get().Find(handle);
  if (*function != nullptr) {
    const auto module = (*function)->module.lock();
    return module != nullptr && module->context_id() == context.id ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_HANDLE;
  }
  const auto kernel = LibraryKernels::Get().Find(reinterpret_cast<CUkernel>(handle));
  const auto library = kernel == nullptr ? nullptr : kernel->library.lock();
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<Module> module;
  const CUresult result = library->ModuleIn(context, &module);
  if (result != CUDA_SUCCESS) return result;
  *function = module->FindFunction(kernel->name, kernel->settings);
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

void UnloadModulesOf(const Context& context) {
  Modules::Get().RemoveIf([&](const Module& module) { return module.context_id() == context.id; });
  Libraries::Get().ForEach([&](Library& library) { library.ForgetContext(context); });
}

}  // namespace iket::simdriver
