// dead_address.h: code that made the addresses of foreign placeholders' stores, and nothing else.
//
// A placeholder stores to shared memory at an address that the compiler made from the CTA's rank in
// its cluster: S2UR, then USHF or ULEA, often once a kernel, sometimes once a loop. When the stores
// go to the ring nobody needs it any more. What is left to others stays: an instruction is named
// only if from behind it no way leads to one that may read its result before that is written anew.
//
// Cost: a walk over the section for each such instruction.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "patch/flow_graph.h"
#include "sass/instruction.h"

namespace iket::patch {

// `removed`: indices of stores that will not take their addresses any more.
std::set<uint32_t> DeadAddressCode(std::span<const sass::Instruction> code, const FlowGraph& flow,
                                   const std::set<uint32_t>& removed, sass::Generation generation);

}  // namespace iket::patch
