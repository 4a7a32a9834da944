#include "base/evictable.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

namespace iket {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<void*, size_t> mappings;
};

// Never destroyed: whoever evicts may do so until the process is gone.
Registry& All() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

void AddEvictable(void* address, size_t bytes) {
  Registry& all = All();
  const std::scoped_lock lock(all.mutex);
  all.mappings[address] = bytes;
}

bool RemoveEvictable(void* address) {
  Registry& all = All();
  const std::scoped_lock lock(all.mutex);
  return all.mappings.erase(address) != 0;
}

void EvictAll() {
  Registry& all = All();
  const std::scoped_lock lock(all.mutex);
  for (const auto& [address, bytes] : all.mappings) madvise(address, bytes, MADV_DONTNEED);
}

}  // namespace iket
