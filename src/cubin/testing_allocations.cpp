#include "cubin/testing_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> largest_allocation = 0;

}  // namespace

void* operator new(size_t size) {
  if (size > largest_allocation) largest_allocation = size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace iket::cubin::testing {

void ForgetAllocations() { largest_allocation = 0; }
size_t LargestAllocation() { return largest_allocation; }

}  // namespace iket::cubin::testing
