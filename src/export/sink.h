// sink.h: where an exporter's bytes go, and whom it tells how far it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/error.h"

namespace iket::exporter {

// Takes the next bytes of a file.
using Sink = std::function<Result<void>(std::string_view)>;
// How much of how much is done, in any unit.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace iket::exporter
