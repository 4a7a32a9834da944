// foreign_code.h: what the placeholders of other tools become: a record as of a mark of our own.
//
//     as compiled                               recorded
//                                               ULOP3.LUT UR0, UR2, mask, UR3, 0xea    one more
//     CS2R.32 Rt, SR_GLOBALTIMERLO              CS2R.32 Ra, SR_CLOCKLO
//     LOP3.LUT Rt, Rt, ID, RZ, 0xfc             MOV Ra+1, our id
//     STS [UR+4], Rp                            STG.E.EF [UR0+8], Rp
//     STS [UR], Rt                              STG.E.EF.64 [UR0], Ra
//     PMTRIG ID                                 UIADD3 UR2, UR2, 16
//
// So the time is that of the SM's clock, by the cycle, and readers know nothing of other tools. Ra
// and Ra+1 are spare registers (spare_registers.h). Where there are none, clock and id go one after
// the other through Rt, whose first store must have read it before it changes: exact as well, and
// slower.
//
// What made the old addresses and serves nobody else is dropped (dead_address.h). Waits and stalls
// of the compiler's stay, each in its place: later instructions may count on them.
#pragma once

#include <vector>

#include "patch/analysis.h"
#include "patch/roomy_copy.h"
#include "ring/layout.h"

namespace iket::patch {

// Chooses how each foreign site of a section records. `registers`: what a thread of the patched
// kernel has. Returns what keeps sites from being recorded.
std::vector<SiteProblem> ChooseRecorders(CodeSection& section, uint32_t registers);

// The section with room (roomy_copy.h), and in its copy the code of all foreign sites that are not
// left out. It has no sites any more; what it says of its code is of the new one.
CodeSection WithForeignCode(const CodeSection& section, const ring::Layout& layout);

}  // namespace iket::patch
