// sink.h: where an exporter's bytes go, and whom it tells how far it is.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/progress.h"

namespace iket::exporter {

// Takes the next bytes of a file.
using Sink = std::function<Result<void>(std::string_view)>;
using iket::Progress;

}  // namespace iket::exporter
