// mapped_sink.h: a capture that several threads write at once.
//
// write(2) holds the file's lock while it copies and finds pages, so threads that write to one file
// wait for one another. Here the end of the file is mapped, a window at a time, and each thread
// copies into its own place, of which it makes the pages present first: a full disk is an error
// then, not a signal. Where a place cannot be mapped (an old kernel, some file systems), or has no
// room, it is written with pwrite.
//
// For a process of our own: it trusts its descriptor, and nobody may cut the file meanwhile. After
// a kill the file ends behind the last place that was taken, and those that were not filled to
// their end are zeros, whole or in part.
//
// Cost: address space of two windows (128 MiB) or a few more; one ftruncate a piece; the processor
// time of a page is twice that of write(2), but threads share it (bench/append_bench.cpp).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "capture/sink.h"

namespace iket::capture {

class MappedSink final : public ByteSink {
 public:
  // A sink on a new file at `path`; an existing file is emptied. Error: kSystem.
  static Result<std::unique_ptr<MappedSink>> Create(const std::string& path);
  ~MappedSink() override;
  MappedSink(const MappedSink&) = delete;
  MappedSink& operator=(const MappedSink&) = delete;

  Result<void> Write(std::span<const std::span<const std::byte>> parts) override;
  Result<void> Close() override;
  bool has_places() const override { return true; }
  Result<uint64_t> Take(uint64_t bytes) override;
  Result<void> Fill(uint64_t at, std::span<const std::span<const std::byte>> parts) override;
  bool GiveBack(uint64_t at, uint64_t bytes) override;
  Result<void> CloseHoles() override;

 private:
  class Window;
  MappedSink(int fd, std::string path);
  std::shared_ptr<Window> WindowAt(uint64_t at);
  bool Populate(const Window& window, uint64_t begin, uint64_t end);
  Result<void> ReadAt(uint64_t at, std::span<std::byte> bytes);
  Result<void> WriteAt(uint64_t at, std::span<const std::byte> part);

  Descriptor fd_;
  std::string path_;
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> holes_;  // bytes, by where they begin
  std::atomic<bool> can_map_ = true;
  std::mutex mutex_;                              // guards what follows
  std::vector<std::shared_ptr<Window>> windows_;  // the newest two
};

}  // namespace iket::capture
