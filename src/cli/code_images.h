// code_images.h: the GPU code in a file, whatever the file is: cubin, PTX, fatbin, program,
// library, object or archive.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace iket::cli {

// A file mapped for reading. It must not shrink meanwhile.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  UntrustedBytes untrusted() const { return UntrustedBytes(data_, size_); }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

struct CodeImage {
  std::string where;  // "fatbin 2, entry 1", "cubin at 0x1200"; empty if it is the whole file
  std::string arch;   // "sm_90a", "compute_90"; as the container says, empty for a bare cubin
  std::string kind;   // "cubin", "PTX", "LTO-IR"
  std::vector<std::byte> code;  // of cubins and PTX, unpacked
  std::string problem;          // why `code` could not be had; then it is empty

  bool is_cubin() const { return kind == "cubin"; }
  bool is_ptx() const { return kind == "PTX"; }
};

// "cubin", "fatbin", "PTX", "ELF file", "archive"; empty for anything else.
std::string FileKind(UntrustedBytes file);

// Calls `visit` with each image, in the order of the file; one is in memory at a time. Returns how
// many there were. `progress` is told the position in the file now and then.
uint64_t ForEachCodeImage(UntrustedBytes file, const std::function<void(const CodeImage&)>& visit,
                          const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace iket::cli
