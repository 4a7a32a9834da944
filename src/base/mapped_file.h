// mapped_file.h: a file as bytes in memory, for reading.
//
// Cost: no copy; pages come in when they are touched, and may leave (evictable.h). The file must
// not shrink while it is mapped.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace iket {

class MappedFile {
 public:
  // `what` names the file's kind in messages, such as "capture". Errors: kSystem (it cannot be
  // opened or mapped), kBadInput (a folder, a pipe, a device).
  static Result<MappedFile> Open(const std::string& path, const char* what);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace iket
