#include "inject/launches.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "inject/contexts.h"
#include "inject/early_window.h"
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
// Of kernels that are not traced, and below it when that was found out.
constexpr uint32_t kPlain = 1u << 31;
static_assert(ring::kMaxKernels < kPlain);
// The table is for traced kernels first.
constexpr uint32_t kMostWithPlain = kSlots / 4, kMost = kSlots / 2;
std::atomic<uint32_t> g_unloads{0};

std::atomic<bool> g_captures{false};
std::atomic<bool> g_looks_up{false};
std::atomic<uint32_t> g_on_their_way{0};
std::atomic<bool> g_elsewhere{false};  // a launch was not in a legacy default stream, or not logged

uint32_t PlainNow() { return kPlain | g_unloads.load(std::memory_order_acquire) % (kPlain - 1); }

uint32_t FirstSlot(const void* handle) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return static_cast<uint32_t>((bits >> 4) * 0x9e3779b97f4a7c15u >> 50) % kSlots;
}

// What is known of a handle; kForgotten if nothing.
uint32_t Find(const void* handle) noexcept {
  if (handle == nullptr || g_used.load(std::memory_order_acquire) == 0) return kForgotten;
  for (uint32_t i = FirstSlot(handle);; i = (i + 1) % kSlots) {
    const Slot& slot = g_slots[i];
    const void* key = slot.handle.load(std::memory_order_acquire);
    if (key == nullptr) return kForgotten;
    if (key == handle) return slot.number.load(std::memory_order_acquire);
  }
}

// False: there is no room.
bool Store(const void* handle, uint32_t number, uint32_t most) noexcept {
  if (handle == nullptr) return true;
  const std::lock_guard lock(g_writers);
  for (uint32_t i = FirstSlot(handle);; i = (i + 1) % kSlots) {
    Slot& slot = g_slots[i];
    const void* key = slot.handle.load(std::memory_order_relaxed);
    if (key == handle) {
      slot.number.store(number, std::memory_order_release);
      return true;
    }
    if (key != nullptr) continue;
    if (g_used.load(std::memory_order_relaxed) >= most) return false;
    slot.number.store(number, std::memory_order_relaxed);
    slot.handle.store(handle, std::memory_order_release);
    g_used.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void NoteStream(CUstream stream) noexcept {
  if (stream != nullptr && stream != CU_STREAM_LEGACY) NoteUnloggedLaunch();
}

// True if what goes into the stream is captured into a graph and does not run.
bool IsCapturing(CUstream stream) noexcept {
  if (!g_captures.load(std::memory_order_acquire)) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Real().StreamIsCapturing != nullptr &&
         Real().StreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

void RememberKernel(const void* handle, uint32_t number) noexcept {
  if (Store(handle, number, kMost)) return;
  Say("too many kernel handles; further launches are recorded but not logged");
}

void RememberPlainKernel(const void* handle) noexcept { Store(handle, PlainNow(), kMostWithPlain); }

void ForgetPlainKernels() noexcept { g_unloads.fetch_add(1); }

void RememberAs(const void* handle, const void* known) noexcept {
  const uint32_t number = Find(known);
  if (number == PlainNow()) {
    RememberPlainKernel(handle);
  } else if (number < kPlain) {
    RememberKernel(handle, number);
  }
}

void LookHandlesUp() noexcept { g_looks_up.store(true); }

bool OnlyLegacyStream() noexcept { return !g_elsewhere.load(std::memory_order_acquire); }

void NoteUnloggedLaunch() noexcept {
  if (!g_elsewhere.load(std::memory_order_relaxed)) g_elsewhere.store(true);
}

OnItsWay OnItsWay::Begin() noexcept {
  g_on_their_way.fetch_add(1);
  OnItsWay one;
  one.counts_ = true;
  return one;
}
OnItsWay::~OnItsWay() {
  if (counts_) g_on_their_way.fetch_sub(1);
}
bool NothingOnItsWay() noexcept { return g_on_their_way.load() == 0; }

void CaptureBegins() noexcept { g_captures.store(true, std::memory_order_release); }

void ForgetKernel(uint32_t number) noexcept {
  const std::lock_guard lock(g_writers);
  for (Slot& slot : g_slots) {
    if (slot.handle.load(std::memory_order_relaxed) == nullptr) continue;
    if (slot.number.load(std::memory_order_relaxed) != number) continue;
    slot.number.store(kForgotten, std::memory_order_release);
  }
}

bool LookUpKernel(const void* handle, uint32_t* number) noexcept {
  *number = Find(handle);
  return *number < kPlain;
}

LaunchShape ShapeOf(const CUlaunchConfig* config) noexcept {
  LaunchShape shape;
  if (config == nullptr) return shape;
  shape.grid[0] = config->gridDimX;
  shape.grid[1] = config->gridDimY;
  shape.grid[2] = config->gridDimZ;
  shape.block[0] = config->blockDimX;
  shape.block[1] = config->blockDimY;
  shape.block[2] = config->blockDimZ;
  shape.dynamic_shared_bytes = config->sharedMemBytes;
  shape.stream = config->hStream;
  for (unsigned i = 0; config->attrs != nullptr && i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      shape.cluster[0] = attribute.value.clusterDim.x;
      shape.cluster[1] = attribute.value.clusterDim.y;
      shape.cluster[2] = attribute.value.clusterDim.z;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
               attribute.value.cooperative != 0) {
      shape.flags |= session::kLaunchCooperative;
    }
  }
  return shape;
}

Launching BeforeLaunch(const void* handle, const LaunchShape& shape) noexcept {
  uint32_t number = Find(handle);
  if (number == PlainNow()) {
    if (MapsEarly()) ArmCurrentContext();
    return {};
  }
  if (number >= kPlain && g_looks_up.load(std::memory_order_relaxed) &&
      FindKernel(static_cast<CUfunction>(const_cast<void*>(handle)), &number)) {
    RememberKernel(handle, number);
  }
  // Also of what is not known: it may be a traced kernel by a handle that no hook has seen.
  const Arming arming = ArmCurrentContext();
  if (number >= kPlain) {
    NoteUnloggedLaunch();
    return {};
  }
  if (arming.result != CUDA_SUCCESS) {
    if (arming.result == CUDA_ERROR_OUT_OF_MEMORY) {
      Say("a launch fails with CUDA_ERROR_OUT_OF_MEMORY: its kernel records, and has nowhere to");
    }
    return {.result = arming.result};
  }
  Launching launching{.on_its_way = OnItsWay::Begin()};
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
  NoteStream(stream);
  const bool is_captured = IsCapturing(stream);
  turn = CountLaunch(is_captured);
  Guest* guest = Guest::Existing();
  if (guest == nullptr || guest->launch_log() == nullptr) return NoteUnloggedLaunch(), nullptr;
  if (is_captured) flags |= session::kLaunchCaptured;
  if (!turn.recorded) flags |= session::kLaunchLeftOut;
  session::LaunchEntry* entry = guest->launch_log()->Append();
  if (entry == nullptr) return NoteUnloggedLaunch(), nullptr;
  entry->context = context;
  entry->flags = flags;
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
