// images.h: code images on their way into the driver.
//
// Prepare looks at an image that the program is about to load. An image without our marks, or one
// that cannot be read, is none of our business and costs a scan of its bytes; compressed code that
// nvcc put into a program or library is not even unpacked unless that says that it has marks
// (host_object.h). One with marks comes back patched; the caller loads that instead and, if the
// driver refuses it, the original. PTX for which there is no machine code is compiled first
// (compile.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cubin/image_kind.h"
#include "inject/account.h"
#include "inject/jit_options.h"
#include "patch/patch.h"

namespace iket::inject {

// A patched image; owns its bytes, which the driver may read until the image is unloaded.
struct PatchedImage {
  std::vector<std::byte> bytes;  // an ELF or a fatbin
  cubin::FatbinWrapper wrapper{};
  bool has_wrapper = false;
  KernelNumbers kernels;
  // With which it is loaded; it may have been compiled with them.
  std::unique_ptr<JitOptions> jit;

  // What to give to the driver in place of the program's pointer.
  const void* pointer() const {
    return has_wrapper ? static_cast<const void*>(&wrapper) : bytes.data();
  }
};

// A call that loads code.
struct Loading {
  const char* call;      // "cuModuleLoadData"
  bool library = false;  // for every GPU of the process, and not for the current context's alone
  unsigned jit_count = 0;
  CUjit_option* jit_options = nullptr;
  void** jit_values = nullptr;
};

// Null: load the original. Never throws; what stands in the way is said or noted.
std::shared_ptr<PatchedImage> Prepare(const void* image, const Loading& loading) noexcept;

// The same for a file that the driver would read itself; null also if it cannot be read.
std::shared_ptr<PatchedImage> PrepareFile(const char* path, const Loading& loading) noexcept;

}  // namespace iket::inject
