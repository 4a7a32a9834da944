#include "sim/memory_access.h"

#include <fmt/format.h>

#include "sim/cta.h"
#include "sim/sm.h"

namespace iket::sim {
namespace {

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
    warp.Raise(Fault::Kind::kIllegalAddress, lane, address,
               fmt::format("{} of {} bytes at {} address {:#x}, where there is no memory", verb,
                           size, SpaceName(space), address));
  }
  return bytes;
}

}  // namespace iket::sim
