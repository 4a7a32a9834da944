#include "sim/print_fifo.h"

#include <algorithm>
#include <utility>

namespace iket::sim {
namespace {

uint64_t SizeOf(const std::string& text) {
  return std::max<uint64_t>(text.size(), PrintFifo::kLeastBytes);
}

}  // namespace

void PrintFifo::Add(std::string text) {
  const std::lock_guard lock(mutex_);
  used_ += SizeOf(text);
  contents_.texts.push_back(std::move(text));
  while (used_ > bytes_) {
    used_ -= SizeOf(contents_.texts.front());
    contents_.texts.pop_front();
    ++contents_.overwritten;
  }
}

PrintFifo::Contents PrintFifo::Take() {
  const std::lock_guard lock(mutex_);
  used_ = 0;
  return std::exchange(contents_, {});
}

}  // namespace iket::sim
