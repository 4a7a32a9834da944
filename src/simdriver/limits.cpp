#include "simdriver/limits.h"

#include <algorithm>

#include "simdriver/device.h"

namespace iket::simdriver {
namespace {

// What a thread's local memory can be at most.
constexpr size_t kMostStack = size_t{512} << 10;
constexpr size_t kMostL2Granularity = 128;

// What a limit is before anybody sets it; 0 if the device does not know it.
size_t Default(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return Model().stack_bytes_per_thread;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return Model().printf_bytes;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return Model().heap_bytes;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

}  // namespace

size_t Limits::Value(CUlimit limit) const {
  const auto set = set_.find(limit);
  return set != set_.end() ? set->second : Default(limit);
}

CUresult Limits::Get(CUlimit limit, size_t* value) const {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Default(limit) == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const std::lock_guard lock(mutex_);
  *value = Value(limit);
  return CUDA_SUCCESS;
}

CUresult Limits::Set(CUlimit limit, size_t value) {
  if (Default(limit) == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const std::lock_guard lock(mutex_);
  const bool wrong = (limit == CU_LIMIT_STACK_SIZE && value > kMostStack) ||
                     (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > kMostL2Granularity);
  const bool too_late = (limit == CU_LIMIT_PRINTF_FIFO_SIZE && printf_used_) ||
                        (limit == CU_LIMIT_MALLOC_HEAP_SIZE && heap_ != nullptr);
  if (wrong || too_late) return CUDA_ERROR_INVALID_VALUE;
  const bool of_memory = limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
  if (of_memory && value > Model().memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  set_[limit] = value;
  return CUDA_SUCCESS;
}

void Limits::Use(const sim::Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  printf_used_ |= kernel.uses_printf;
  if (kernel.uses_heap && heap_ == nullptr) {
    heap_ = std::make_unique<sim::Heap>(Addresses(), Value(CU_LIMIT_MALLOC_HEAP_SIZE));
  }
  if (kernel.local_bytes > Value(CU_LIMIT_STACK_SIZE)) {
    set_[CU_LIMIT_STACK_SIZE] = kernel.local_bytes;
  }
}

void Limits::Apply(sim::LaunchConfig& launch) {
  const std::lock_guard lock(mutex_);
  launch.stack_bytes = static_cast<uint32_t>(Value(CU_LIMIT_STACK_SIZE));
  launch.printf_bytes = Value(CU_LIMIT_PRINTF_FIFO_SIZE);
  launch.heap = heap_.get();
}

}  // namespace iket::simdriver
