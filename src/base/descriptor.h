// descriptor.h: a file descriptor in a process that is not ours.
//
// The program may close every descriptor that it does not know (daemons do) and then get the same
// number for a file of its own, or start with 0 to 2 closed. So a Descriptor stays above 2,
// remembers which file it stands for, and is asked before each use: bytes meant for a capture must
// never reach somebody's data. Cost: one fstat a use.
#pragma once

#include <sys/types.h>

#include <utility>

namespace iket {

class Descriptor {
 public:
  Descriptor() = default;
  // Takes `fd` (-1: none) over.
  explicit Descriptor(int fd);
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { Close(); }

  // The descriptor, or -1 if there is none or it stands for another file by now.
  int get() const;
  bool is_open() const { return fd_ >= 0; }
  // The same, opened again at `path` where the program closed it, if that is still the same file.
  int GetOrReopen(const char* path, int flags);
  // Closes it, unless it is somebody else's by now. What close() returned.
  int Close();

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace iket
