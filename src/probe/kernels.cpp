#include "probe/kernels.h"

#include <cstring>
#include <utility>

// clang-format off
asm(".section .rodata\n"
    ".balign 16\n"
    ".type iket_probe_kernels, @object\n"
    ".hidden iket_probe_kernels\n"
    ".globl iket_probe_kernels\n"
    "iket_probe_kernels:\n"
    ".incbin \"" IKET_PROBE_KERNELS "\"\n"
    ".hidden iket_probe_kernels_end\n"
    ".globl iket_probe_kernels_end\n"
    "iket_probe_kernels_end:\n"
    ".byte 0\n"
    ".previous\n");
// clang-format on
// NOLINTNEXTLINE(readability-identifier-naming): names of the assembler's
extern "C" const std::byte iket_probe_kernels[], iket_probe_kernels_end[];

namespace iket::probe {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::span<const std::byte> KernelImage() { return {iket_probe_kernels, iket_probe_kernels_end}; }

std::optional<Bench> Bench::Set(const DriverCalls& calls, const char* kernel, size_t bytes) {
  Bench bench(calls);
  void* memory = nullptr;
  if (calls.ModuleLoadData(&bench.module_, KernelImage().data()) != CUDA_SUCCESS ||
      calls.ModuleGetFunction(&bench.function_, bench.module_, kernel) != CUDA_SUCCESS ||
      calls.StreamCreate(&bench.stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      calls.MemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  bench.memory_ = static_cast<std::byte*>(memory);
  std::memset(bench.memory_, 0, bytes);
  return bench;
}

Bench::Bench(Bench&& other) noexcept
    : calls_(other.calls_),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_),
      stream_(std::exchange(other.stream_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)) {}

Bench& Bench::operator=(Bench&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(module_, other.module_);
  std::swap(function_, other.function_);
  std::swap(stream_, other.stream_);
  std::swap(memory_, other.memory_);
  return *this;
}

Bench::~Bench() {
  if (stream_ != nullptr && calls_.StreamQuery(stream_) == CUDA_ERROR_NOT_READY) return;
  if (stream_ != nullptr) calls_.StreamDestroy(stream_);
  if (memory_ != nullptr) calls_.MemFreeHost(memory_);
  if (module_ != nullptr) calls_.ModuleUnload(module_);
}

bool Bench::Ends(std::chrono::nanoseconds patience) const {
  const Clock::time_point until = Clock::now() + patience;
  for (;;) {
    const CUresult state = calls_.StreamQuery(stream_);
    if (state != CUDA_ERROR_NOT_READY) return state == CUDA_SUCCESS;
    if (Clock::now() > until) return false;
  }
}

}  // namespace iket::probe
