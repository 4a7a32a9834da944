// sink.h: where the bytes of a capture go.
//
// A sink takes whole pieces: a piece is written to its end, or what was written of it is taken
// back, so that a full disk never leaves half a chunk before later ones. FdSink is safe in somebody
// else's process: it touches no stdio, retries interrupted and short writes, keeps SIGXFSZ (file
// size limit) and SIGPIPE from reaching the program, and writes to its own file whatever the
// program does to descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"

namespace iket::capture {

class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Appends the parts, one after the other. On an error (kSystem) none of them remains, or torn()
  // is true from now on.
  virtual Result<void> Write(std::span<const std::span<const std::byte>> parts) = 0;

  // Part of a failed piece could not be taken back: nothing may be written any more.
  virtual bool torn() const { return false; }

  // No more will come. Error (kSystem): something written before did not reach the file after all.
  virtual Result<void> Close() { return {}; }

  // A sink that has places takes pieces from several threads at once: each first takes its place,
  // one thread at a time, then fills it.
  virtual bool has_places() const { return false; }
  // Takes the next `bytes` bytes; where they begin. Error: kSystem, and nothing was taken.
  virtual Result<uint64_t> Take(uint64_t bytes);
  // From any thread. On an error (kSystem) the place holds zeros, or a part of the piece.
  virtual Result<void> Fill(uint64_t at, std::span<const std::span<const std::byte>> parts);
  // Gives back the place of a piece that could not be written, one thread at a time as Take().
  // False: others were taken behind it, and it is a hole for now.
  virtual bool GiveBack(uint64_t at, uint64_t bytes);
  // When no piece is on its way: what stands behind holes moves up. Error: kSystem, and what was to
  // move is lost.
  virtual Result<void> CloseHoles() { return {}; }
};

// Writes to a file descriptor, from its start: an empty regular file, or a pipe.
class FdSink final : public ByteSink {
 public:
  // Takes `fd` over and closes it at the end. `name` is for messages.
  FdSink(int fd, std::string name);
  ~FdSink() override;
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // A sink on a new file at `path`; an existing file is emptied. Error: kSystem.
  static Result<std::unique_ptr<FdSink>> Create(const std::string& path);

  Result<void> Write(std::span<const std::span<const std::byte>> parts) override;
  bool torn() const override { return torn_; }
  Result<void> Close() override;

 private:
  Descriptor fd_;
  std::string name_;
  bool seekable_;
  uint64_t written_ = 0;  // bytes of whole pieces
  bool torn_ = false;
};

// Keeps everything in memory.
class MemorySink final : public ByteSink {
 public:
  Result<void> Write(std::span<const std::span<const std::byte>> parts) override;
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace iket::capture
