// trampoline.h: the instructions around a patched kernel: what a warp does when it starts and ends.
//
// docs/design/recording.md section 3 says what they must achieve.
// Cost: 25 instructions at entry (27 with blockIdx.y and .z) on sm_90, 30 (32) elsewhere, where
// less is known of special registers, and 5 at an exit, of which a short warp pays nearly all in
// issue slots. In two parts (late_start.h) the entry code has 5 instructions more.
#pragma once

#include <cstdint>
#include <vector>

#include "patch/late_start.h"
#include "ring/cta_filter.h"
#include "ring/layout.h"
#include "sass/instruction.h"

namespace iket::patch {

// General registers that a kernel needs so that the entry code has its R0..R15: REGCOUNT counts two
// that code cannot use.
inline constexpr uint32_t kMinRegisters = 24;

struct EntryOptions {
  ring::Layout layout;
  sass::Generation generation = sass::Generation::kHopper;
  uint32_t kernel = 0;           // number of the kernel, < ring::kMaxKernels
  uint32_t constant_offset = 0;  // of the window's base in c[3]
  bool reads_cta_yz = true;      // record blockIdx.y and .z; else 0 stands there
  ring::CtaFilter filter{};      // warps of other CTAs record into the sink
};

// Entry code that ends where the kernel's own first instruction would run. Clobbers R0..R15 and P0,
// with a filter P1, P2 and UR4, and sets UR0..UR3; nothing of the warp's is alive yet.
std::vector<sass::Instruction> EntryCode(const EntryOptions& options);

// The same in two parts, for sm_90 alone. The first ends where the kernel's own first instruction
// would run, the second stands at the place that was found. Lanes that come there apart run it
// once: `skip` is the index of a branch to behind it, still without a target, for those that find
// it done.
struct LateEntryCode {
  std::vector<sass::Instruction> first, second;
  uint32_t skip = 0;
};
LateEntryCode SplitEntryCode(const EntryOptions& options, const LateStart& late);

// Code for lanes that are about to EXIT; `first_register` is a multiple of 4 and names four
// registers that it may clobber. Leaves UR1..UR3 as they were: other lanes of the warp may go on.
std::vector<sass::Instruction> ExitCode(const ring::Layout& layout, sass::Generation generation,
                                        uint8_t first_register);

// What the slots of a site become: before its store UR0 = address of the record, from UR2, and
// behind it UR2 += bytes. UR0 means nothing between sites, so nobody has to restore it.
sass::Instruction RingSlot(const ring::Layout& layout, const sass::Control& control);
sass::Instruction AdvanceSlot(sass::Generation generation, uint32_t bytes,
                              const sass::Control& control);

// Least distances, in cycles, between a uniform instruction and who reads its result: ptxas's own.
inline constexpr uint8_t kUniformToUniform = 4;
inline constexpr uint8_t kUniformToAddress = 9;

}  // namespace iket::patch
