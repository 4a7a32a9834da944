// trial.h: whether this machine's GPUs record marks right: a small kernel is patched, run and read.
//
// What iket writes into kernels was run on few GPUs, and is checked by a disassembler for all
// others (docs/design/architectures.md): here somebody who has one finds out. The kernel runs in a
// process of its own, which a fault may end and a clock does end. Cost: a second or two a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace iket::cli {

struct Trial {
  bool passed = false;
  std::string what;  // one sentence: what was recorded, or what was wrong
};

// Of the n-th GPU that the driver shows. `self` is this program.
Trial TryGpu(uint32_t gpu, const std::string& self);

// What that process does: runs the kernel and writes the capture.
Result<int> RunTrial(uint32_t gpu, const std::string& capture);

}  // namespace iket::cli
