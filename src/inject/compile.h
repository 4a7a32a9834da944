// compile.h: PTX to machine code, by the driver's own linker, with the options of the load call in
// whose place it happens.
//
// The driver would compile the same PTX in that call. A failure leaves no trace (jit_options.h), so
// that the caller's own call can go on.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "inject/jit_options.h"

namespace iket::inject {

struct CompilerInput {
  CUjitInputType type = CU_JIT_INPUT_PTX;  // or CU_JIT_INPUT_FATBINARY
  UntrustedBytes bytes;                    // of PTX, without a NUL
};

// Machine code for the current context's GPU. Without a current context, the primary one of the
// first GPU is used while it lasts.
Result<std::vector<std::byte>> Compile(std::span<const CompilerInput> inputs, JitOptions& options);

}  // namespace iket::inject
