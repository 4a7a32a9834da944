#include "sim/memory_access.h"

#include <fmt/format.h>

#include "sim/cta.h"
#include "sim/sm.h"

namespace iket::sim {
namespace {

// R1, by the calling convention.
constexpr uint32_t kStackPointer = 1;

const char* SpaceName(Space space) {
  switch (space) {
    case Space::kGeneric:
      return "generic";
    case Space::kGlobal:
      return "global";
    case Space::kShared:
      return "shared";
    case Space::kLocal:
      return "local";
  }
  return "";
}

}  // namespace

std::byte* Access(Warp& warp, Space space, uint32_t lane, uint64_t address, uint32_t size,
                  bool write) {
  const char* const verb = write ? "write" : "read";
  if ((address & (size - 1)) != 0) {
    warp.Raise(Fault::Kind::kMisaligned, lane, address,
               fmt::format("{} of {} bytes at {} address {:#x}, which is no multiple of {}", verb,
                           size, SpaceName(space), address, size));
    return nullptr;
  }
  std::byte* bytes = nullptr;
  switch (space) {
    case Space::kGeneric:
      if (address - kSharedWindow < kWindowBytes) {
        bytes = warp.cta->Shared(address - kSharedWindow, size);
      } else if (address - kLocalWindow < kWindowBytes) {
        bytes = warp.Local(lane, address - kLocalWindow, size);
      } else {
        bytes = warp.sm->memory.Find(address, size, write);
      }
      break;
    case Space::kGlobal:
      bytes = warp.sm->memory.Find(address, size, write);
      if (bytes == nullptr &&
          (address - kSharedWindow < kWindowBytes || address - kLocalWindow < kWindowBytes)) {
        warp.Raise(
            Fault::Kind::kWrongSpace, lane, address,
            fmt::format("{} of {} bytes at {:#x} as global memory, but it is {} memory", verb, size,
                        address, address - kSharedWindow < kWindowBytes ? "shared" : "local"));
        return nullptr;
      }
      break;
    case Space::kShared:
      bytes = warp.cta->Shared(address, size);
      break;
    case Space::kLocal:
      bytes = warp.Local(lane, address, size);
      break;
  }
  if (bytes == nullptr) {
    // The stack pointer, which counts down from the end of local memory, has passed its begin.
    const auto stack = static_cast<int32_t>(warp.Register(kStackPointer, lane));
    const bool local = space == Space::kLocal || address >> 32 == kLocalWindow >> 32;
    if (local && stack < 0) {
      warp.Raise(
          Fault::Kind::kStackOverflow, lane, address,
          fmt::format(
              "{} of {} bytes; the stack of {} bytes a thread is at least {} bytes too small: "
              "set CU_LIMIT_STACK_SIZE",
              verb, size, warp.launch->local_bytes, -int64_t{stack}));
      return nullptr;
    }
    warp.Raise(Fault::Kind::kIllegalAddress, lane, address,
               fmt::format("{} of {} bytes at {} address {:#x}, where there is no memory", verb,
                           size, SpaceName(space), address));
  }
  return bytes;
}

}  // namespace iket::sim
