// cuInit, the versions, and what a driver knows of itself.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "simdriver/call.h"
#include "simdriver/lifetime.h"

namespace iket::simdriver {
namespace {

std::atomic<bool> g_initialized{false};
std::atomic<bool> g_forked{false};

// A child has none of its parent's threads, and of its locks it cannot know who holds them. As with
// NVIDIA's driver it cannot use the device any more.
void WatchForFork() {
  static const bool kWatched = pthread_atfork(nullptr, nullptr, [] {
                                 if (g_initialized.exchange(false)) g_forked.store(true);
                               }) == 0;
  if (!kWatched) Say("cannot watch for fork: a forked child that uses the device may hang");
}

constexpr char kForkRefused[] =
    "this process was forked from one that had used the device, and cannot use it, as on a GPU: "
    "fork before cuInit, or start another program";

constexpr char kRuntimeRefused[] =
    "the CUDA runtime (<<<>>> programs) accepts no software device: run this program on a GPU, or "
    "use the driver API or NVRTC, which work here";

// The table that NVRTC asks for; it does well without.
constexpr unsigned char kNvrtcTable[16] = {0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41,
                                           0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28};

bool AsksNvrtc(const CUuuid* table) {
  return table != nullptr && std::memcmp(table->bytes, kNvrtcTable, sizeof kNvrtcTable) == 0;
}

}  // namespace

bool Initialized() noexcept { return g_initialized.load(std::memory_order_acquire); }

}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuInit(unsigned init_flags) {
  return GuardedCall([&] {
    if (init_flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (g_forked.load()) {
      Say(kForkRefused);
      return CUDA_ERROR_NOT_INITIALIZED;
    }
    WatchForExit();
    WatchForFork();
    g_initialized.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

// libcudart asks for NVIDIA's own tables first of all, checks the driver by them, and fails.
CUresult cuGetExportTable(const void** table, const CUuuid* which) {
  static std::atomic<bool> said{false};
  if (!AsksNvrtc(which) && !said.exchange(true)) Say(kRuntimeRefused);
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart() {
  return ContextCall([](Context&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop() {
  return ContextCall([](Context&) { return CUDA_SUCCESS; });
}

}  // extern "C"
