// output_file.h: a file that is either whole or not there.
//
// Bytes go to a temporary name in the same folder; Commit() renames it over the wanted one. Without
// Commit() (an error, an early return) the temporary is removed, and so it is when the process is
// ended by one of the signals named in RemoveTemporariesOnSignals(). A reader never sees half a
// file.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace iket::exporter {

class OutputFile {
 public:
  // Opens a temporary beside `path`, whose folder must exist; beside what it points at, if it is a
  // link. A device or a pipe is opened itself.
  static Result<OutputFile> Create(std::string path);

  // What the process was given as its standard output; bytes that were written stay there.
  static Result<OutputFile> StandardOutput();

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Appends `bytes`, retrying short writes. Not buffered: write in blocks of some 100 KiB.
  Result<void> Write(std::string_view bytes);

  // Closes and puts the file in its place, replacing what was there. Nothing may follow.
  Result<void> Commit();

  uint64_t bytes_written() const { return bytes_written_; }
  const std::string& path() const { return path_; }
  // Where the file will stand, for what must be made on the way; "" of a device or a pipe.
  std::string folder() const;

 private:
  OutputFile(std::string path, std::string temporary, int fd, int slot);

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  int slot_ = -1;  // of the list that the signal handler reads
  uint64_t bytes_written_ = 0;
};

// Installs handlers for SIGINT, SIGTERM and SIGHUP (where they are not ignored) that remove the
// temporaries of all open OutputFiles and then end the process as the signal would have. For the
// command line only: a library has no business with signals.
void RemoveTemporariesOnSignals();

}  // namespace iket::exporter
