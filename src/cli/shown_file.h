// shown_file.h: a file that is held open to be shown.
//
// One that is made for that never has a name: only this process has it, and it is gone when the
// process is, however that ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace iket::cli {

class ShownFile {
 public:
  // One that is there, as long as it is now. Error: kSystem.
  static Result<ShownFile> Open(const std::string& path);
  // An empty one in the folder for temporary files, TMPDIR. Error: kSystem.
  static Result<ShownFile> Create();

  ShownFile(ShownFile&& other) noexcept;
  ShownFile& operator=(ShownFile&&) = delete;
  ~ShownFile();

  // To one of Create().
  Result<void> Write(std::string_view bytes);

  int fd() const { return fd_; }
  uint64_t size() const { return size_; }

 private:
  ShownFile(int fd, std::string place, uint64_t size)
      : fd_(fd), place_(std::move(place)), size_(size) {}

  int fd_ = -1;
  std::string place_;
  uint64_t size_ = 0;
};

}  // namespace iket::cli
