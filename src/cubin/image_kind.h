// image_kind.h: what sort of code image some bytes, or a bare pointer, are.
//
// The driver's load functions take a pointer without a size; ELF and fatbin say in their headers
// how long they are, PTX is a C string, and the wrapper points at a fatbin. The *At functions read
// memory that the caller of the driver vouches for: the pointer must be one that the driver would
// accept. What they return is still untrusted content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace iket::cubin {

enum class ImageKind { kUnknown, kElf, kFatbin, kWrapper, kPtx };

// By the first bytes. kElf means ELF64 for EM_CUDA; anything else ELF is kUnknown. kPtx is a text
// with nothing but comments before its .version.
ImageKind KindOf(UntrustedBytes bytes);
const char* KindName(ImageKind kind);

// What __cudaRegisterFatBinary and cuLibraryLoadData of the runtime are given.
struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;  // 1; 2 for device-linked programs
  const void* fatbin;
  const void* extra;  // version 1: a file name or null; 2: null-terminated list of the fatbins of
                      // the objects that were linked
};
static_assert(sizeof(FatbinWrapper) == 24);

// The image behind a pointer given to cuModuleLoadData or cuLibraryLoadData. A wrapper is followed
// to its fatbin: `kind` says kFatbin then and `wrapper_version` is not 0. The size of an ELF image
// is where its last section or header table ends; the bytes of PTX do not include its NUL.
struct UntrustedImage {
  ImageKind kind = ImageKind::kUnknown;
  UntrustedBytes bytes;
  uint32_t wrapper_version = 0;
  std::vector<UntrustedBytes> prelinked;  // of a wrapper of version 2
};
Result<UntrustedImage> UntrustedImageAt(const void* image);

}  // namespace iket::cubin
