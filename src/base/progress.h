// progress.h: how long work tells whoever waits for it how far it is.
#pragma once

#include <cstdint>
#include <functional>

namespace iket {

// How much of how much is done, in any unit. Called often, so it must be cheap; may be empty.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace iket
