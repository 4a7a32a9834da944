// module.h: loaded code: modules of a context, libraries of the process, and their kernels.
//
// A library's code is loaded into a context when it is first needed there. Settings of a library's
// kernel are those of its functions in every context.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/image.h"
#include "simdriver/context.h"
#include "simdriver/cuda_api.h"
#include "simdriver/handles.h"

namespace iket::simdriver {

class Module;
class Library;

// What a program may set of a kernel.
struct FunctionSettings {
  std::mutex mutex;
  int max_dynamic_shared = -1;  // -1: what fits beside the static in 48 KiB
  int carveout = -1;
  int cluster[3] = {0, 0, 0};
  int nonportable_cluster = 0;
  int cluster_policy = 0;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
};

// CUfunction: a kernel of a module.
struct Function {
  const sim::Kernel* kernel = nullptr;
  std::shared_ptr<sim::Image> image;  // which the kernel is part of
  std::weak_ptr<Module> module;
  std::shared_ptr<FunctionSettings> settings;
};
using Functions = HandleTable<Function, CUfunction>;

// CUkernel: a kernel of a library, in no context yet.
struct LibraryKernel {
  std::string name;
  std::weak_ptr<Library> library;
  std::shared_ptr<FunctionSettings> settings = std::make_shared<FunctionSettings>();
};
using LibraryKernels = HandleTable<LibraryKernel, CUkernel>;

class Module : public std::enable_shared_from_this<Module> {
 public:
  Module(std::shared_ptr<sim::Image> image, uint64_t context_id);
  ~Module();

  uint64_t context_id() const { return context_id_; }
  const std::shared_ptr<sim::Image>& image() const { return image_; }
  // What cuModuleGetGlobal and cuLibraryGetGlobal answer; `address` and `bytes` may be null.
  CUresult GetGlobal(const char* name, CUdeviceptr* address, size_t* bytes) const;
  // Null if there is none of that name. `settings`, if given, are those that it is made with.
  std::shared_ptr<Function> FindFunction(std::string_view name,
                                         std::shared_ptr<FunctionSettings> settings = nullptr);

 private:
  const std::shared_ptr<sim::Image> image_;
  const uint64_t context_id_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Function>, std::less<>> functions_;
};
using Modules = HandleTable<Module, CUmodule>;

class Library : public std::enable_shared_from_this<Library> {
 public:
  // Of a cubin that FindCubin returned.
  explicit Library(std::vector<std::byte> cubin);
  ~Library();

  // Its code in a context, loaded now if it is not yet.
  CUresult ModuleIn(const Context& context, std::shared_ptr<Module>* module);
  void ForgetContext(const Context& context);
  const std::vector<std::string>& kernel_names() const { return names_; }
  // Null if there is none of that name.
  std::shared_ptr<LibraryKernel> FindKernel(std::string_view name);

 private:
  const std::vector<std::byte> cubin_;
  std::vector<std::string> names_;  // in the order of the cubin
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Module>> modules_;  // by id of the context
  std::map<std::string, std::shared_ptr<LibraryKernel>, std::less<>> kernels_;
};
using Libraries = HandleTable<Library, CUlibrary>;

// The cubin for this device in what a load function was given: a cubin, a fatbin, a wrapper, PTX.
// What cannot run here is said in one line, with the call's name.
CUresult FindCubin(const char* call, const void* image, std::vector<std::byte>* cubin);
// The same of a file.
CUresult FindCubinInFile(const char* call, const char* path, std::vector<std::byte>* cubin);
CUresult LoadImage(const char* call, const std::vector<std::byte>& cubin,
                   std::shared_ptr<sim::Image>* image);

// A CUfunction, or a CUkernel that was cast to one, as every launch function takes it: the function
// in this context.
CUresult FindFunction(const Context& context, CUfunction handle,
                      std::shared_ptr<Function>* function);

// At the end of a context.
void UnloadModulesOf(const Context& context);

}  // namespace iket::simdriver
