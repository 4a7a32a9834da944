// early_window.h: rings that are mapped before there is any code to record.
//
// Rings are mapped when the first patched image comes into a context. By then the program has often
// put its data there, and mapping and clearing memory drives that out of the GPU's caches and
// tables of addresses: a kernel that is launched once then reads it 0.2 to 0.7 us slower than it
// would have (docs/benchmarks/compat.md). Asked for (session::kEnvMapEarly), rings are mapped
// before the first launch of any kernel in a context, so that what kernels put there comes later.
//
// Cost: the memory of the rings in every context that launches anything. Nothing is said if it
// cannot be had; that is for whoever needs it.
#pragma once

#include <cuda.h>

#include <optional>

#include "inject/clock_exchange.h"
#include "inject/window.h"

namespace iket::inject {

// Was it asked for? Then ArmCurrentContext() is wanted before launches of all kernels.
bool MapsEarly() noexcept;
// For a context in which no patched image is. A few comparisons but for the first time in each.
void MapEarly() noexcept;

struct EarlyWindow {
  Window window;
  ClockExchanges clocks;
};
// What was made for a context, if it has this layout; its owner is the caller.
std::optional<EarlyWindow> TakeEarlyWindow(unsigned long long context_id,
                                           const ring::Layout& layout);

}  // namespace iket::inject
