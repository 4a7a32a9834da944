#include "inject/own_process.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace iket::inject {
namespace {

struct Own {
  const std::atomic<uint32_t>* page = nullptr;  // of a 1 that children do not have
  pid_t pid = 0;
};

Own Make() noexcept {
  Own own{.pid = getpid()};
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return own;
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    return own;
  }
  auto* const word = static_cast<std::atomic<uint32_t>*>(memory);
  word->store(1);
  own.page = word;
  return own;
}

}  // namespace

bool IsOwnProcess() noexcept {
  static const Own kOwn = Make();
  if (kOwn.page != nullptr) return kOwn.page->load(std::memory_order_relaxed) != 0;
  return kOwn.pid == getpid();
}

}  // namespace iket::inject
