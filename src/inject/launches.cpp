#include "inject/launches.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "inject/contexts.h"
#include "inject/guest.h"
#include "inject/say.h"
#include "session/finish.h"

namespace iket::inject {
namespace {

// Open addressing, never more than half full, never shrinks: readers need no lock.
constexpr uint32_t kSlots = 1u << 14;
struct Slot {
  std::atomic<const void*> handle;
  std::atomic<uint32_t> number;
};
Slot g_slots[kSlots];
std::atomic<uint32_t> g_used{0};
std::mutex g_writers;

constexpr uint32_t kForgotten = ~0u;

uint32_t FirstSlot(const void* handle) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return static_cast<uint32_t>((bits >> 4) * 0x9e3779b97f4a7c15u >> 50) % kSlots;
}

// True if what goes into the stream is captured into a graph and does not run.
bool IsCapturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Real().StreamIsCapturing != nullptr &&
         Real().StreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

void RememberKernel(const void* handle, uint32_t number) noexcept {
  if (handle == nullptr) return;
  const std::lock_guard lock(g_writers);
  for (uint32_t i = FirstSlot(handle);; i = (i + 1) % kSlots) {
    Slot& slot = g_slots[i];
    const void* key = slot.handle.load(std::memory_order_relaxed);
    if (key == handle) {
      slot.number.store(number, std::memory_order_release);
      return;
    }
    if (key != nullptr) continue;
    if (g_used.load(std::memory_order_relaxed) >= kSlots / 2) {
      Say("too many kernel handles; further launches are recorded but not logged");
      return;
    }
    slot.number.store(number, std::memory_order_relaxed);
    slot.handle.store(handle, std::memory_order_release);
    g_used.fetch_add(1, std::memory_order_release);
    return;
  }
}

void ForgetKernel(uint32_t number) noexcept {
  const std::lock_guard lock(g_writers);
  for (Slot& slot : g_slots) {
    if (slot.handle.load(std::memory_order_relaxed) == nullptr) continue;
    if (slot.number.load(std::memory_order_relaxed) != number) continue;
    slot.number.store(kForgotten, std::memory_order_release);
  }
}

bool LookUpKernel(const void* handle, uint32_t* number) noexcept {
  if (handle == nullptr || g_used.load(std::memory_order_acquire) == 0) return false;
  for (uint32_t i = FirstSlot(handle);; i = (i + 1) % kSlots) {
    const Slot& slot = g_slots[i];
    const void* key = slot.handle.load(std::memory_order_acquire);
    if (key == nullptr) return false;
    if (key != handle) continue;
    *number = slot.number.load(std::memory_order_acquire);
    return *number != kForgotten;
  }
}

Launching BeforeLaunch(const void* handle, const LaunchShape& shape) noexcept {
  const Arming arming = ArmCurrentContext();
  uint32_t number = 0;
  if (!LookUpKernel(handle, &number)) return {};
  if (arming.result != CUDA_SUCCESS) {
    if (arming.result == CUDA_ERROR_OUT_OF_MEMORY) {
      Say("a launch fails with CUDA_ERROR_OUT_OF_MEMORY: its kernel records, and has nowhere to");
    }
    return {.result = arming.result};
  }
  Launching launching;
  launching.entry = NewEntry(arming.context, shape.stream, shape.flags, launching.turn);
  session::LaunchEntry* const entry = launching.entry;
  if (entry == nullptr) return launching;
  entry->kernel = number;
  std::memcpy(entry->grid, shape.grid, sizeof entry->grid);
  std::memcpy(entry->block, shape.block, sizeof entry->block);
  std::memcpy(entry->cluster, shape.cluster, sizeof entry->cluster);
  entry->dynamic_shared_bytes = shape.dynamic_shared_bytes;
  entry->state.store(1, std::memory_order_release);
  return launching;
}

session::LaunchEntry* NewEntry(uint32_t context, CUstream stream, uint32_t flags,
                               Turn& turn) noexcept {
  const bool is_captured = IsCapturing(stream);
  turn = CountLaunch(is_captured);
  Guest* guest = Guest::Existing();
  if (guest == nullptr || guest->launch_log() == nullptr) return nullptr;
  const uint32_t captured = (is_captured ? session::kLaunchCaptured : 0u) |
                            (turn.recorded ? 0u : session::kLaunchLeftOut);
  session::LaunchEntry* entry = guest->launch_log()->Append();
  if (entry == nullptr) return nullptr;
  entry->context = context;
  entry->flags = flags | captured;
  entry->stream = reinterpret_cast<uintptr_t>(stream);
  entry->host_ns = session::NowNs();
  return entry;
}

void AfterLaunch(session::LaunchEntry* entry, CUresult result) noexcept {
  if (entry != nullptr && result != CUDA_SUCCESS) {
    entry->state.store(2, std::memory_order_release);
  }
}

}  // namespace iket::inject
