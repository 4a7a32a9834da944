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
  enum class Verdict : uint8_t {
    kPassed,
    kFailed,    // the GPU, or what was written into the kernel, did not do what it must
    kNotTried,  // something of this machine was in the way
  };
  Verdict verdict = Verdict::kNotTried;
  std::string what;  // one sentence: what was recorded, or what was wrong
};

// Of the n-th GPU that the driver shows. `self` is this program. If a signal asks this one to end
// meanwhile, it does, and leaves nothing behind.
Trial TryGpu(uint32_t gpu, const std::string& self);

// What that process does: runs the kernel and writes the capture. kExitFound if the GPU did not do
// what it must.
Result<int> RunTrial(uint32_t gpu, const std::string& capture);

}  // namespace iket::cli
