// images.h: code images on their way into the driver.
//
// Prepare looks at an image that the program is about to load. An image without our marks, or one
// that cannot be read, is none of our business and costs a scan of its bytes. One with marks comes
// back patched; the caller loads that instead and, if the driver refuses it, the original.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cubin/image_kind.h"
#include "patch/patch.h"

namespace iket::inject {

// A patched image; owns its bytes, which the driver may read until the image is unloaded.
struct PatchedImage {
  std::vector<std::byte> bytes;  // an ELF or a fatbin
  cubin::FatbinWrapper wrapper{};
  bool has_wrapper = false;
  std::map<std::string, uint32_t, std::less<>> kernels;  // mangled name -> number

  // What to give to the driver in place of the program's pointer.
  const void* pointer() const {
    return has_wrapper ? static_cast<const void*>(&wrapper) : bytes.data();
  }
};

// Null: load the original. `source` says where the image comes from, for the capture ("file
// x.cubin", "cuModuleLoadData"). Never throws; what stands in the way is said or noted.
std::shared_ptr<PatchedImage> Prepare(const void* image, const char* source) noexcept;

// The same for a file that the driver would read itself; null also if it cannot be read.
std::shared_ptr<PatchedImage> PrepareFile(const char* path) noexcept;

}  // namespace iket::inject
