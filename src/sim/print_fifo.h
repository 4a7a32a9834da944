// print_fifo.h: what the kernels of a launch have printed, until the launch is over: the latest
// calls that fit into a number of bytes. Older ones are overwritten, as CUDA documents it, and
// counted.
//
// Thread safe. Cost: the bytes that are kept, and a call of the allocator for each printf.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace iket::sim {

class PrintFifo {
 public:
  explicit PrintFifo(uint64_t bytes) : bytes_(bytes) {}
  PrintFifo(const PrintFifo&) = delete;
  PrintFifo& operator=(const PrintFifo&) = delete;

  // What one call has printed. It takes its length, and at least kLeastBytes: what keeping a short
  // text costs.
  static constexpr uint64_t kLeastBytes = 32;
  void Add(std::string text);

  struct Contents {
    std::deque<std::string> texts;  // oldest first
    uint64_t overwritten = 0;       // calls
  };
  // Takes all that is there.
  Contents Take();

 private:
  const uint64_t bytes_;
  std::mutex mutex_;
  uint64_t used_ = 0;
  Contents contents_;
};

}  // namespace iket::sim
