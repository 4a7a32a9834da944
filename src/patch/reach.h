// reach.h: who can call whom, and what follows from that for what may be patched.
//
// A mark in a function is recorded with the state that the trampoline of its kernel made. So a
// function is patched only if every kernel that can reach it has the trampoline, and a kernel gets
// one only if nothing that it reaches breaks that state: code that writes UR0..UR3, or that ends
// warps (EXIT) without the stub that records their ends.
//
// Reachability errs on the safe side. What a code section may call are the functions that its
// relocations name; what those name otherwise than in a call, or data names, may be called by
// whoever calls a pointer. A call of which nothing is known may reach every function. Kernels are
// never called: one that is launched from the device starts warps of its own, with its own
// trampoline.
//
// Nothing is patched for a kernel that is left out; but if it shares marked functions with others
// it gets a trampoline as they do.
//
// Cost: a few passes over relocations and calls. Images that contradict themselves (a chain of
// refusals longer than kMaxRounds) are refused as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cubin/image.h"
#include "patch/analysis.h"

namespace iket::patch {

// Nodes are code sections, by their index in the list that was given, and then two that stand for
// what a pointer may point at and for everything.
struct CallGraph {
  std::vector<std::vector<uint32_t>> callees;  // by caller

  void Add(uint32_t caller, uint32_t callee) { callees[caller].push_back(callee); }
};

struct Relocation {
  uint64_t offset = 0;  // in the section that it changes, bytes
  uint32_t symbol = 0;
};
// Those of a section of type REL or RELA.
std::vector<Relocation> Relocations(const cubin::Section& section);

// Of an image and its code sections.
CallGraph FindCalls(const cubin::Image& image, std::span<const CodeSection> sections);

// What a decision needs to know of a code section.
struct CallNode {
  bool is_kernel = false;
  bool has_marks = false;
  bool ends_warps = false;         // has EXITs; every kernel does
  bool can_be_patched = true;      // by itself
  bool breaks_ring_state = false;  // writes one of UR0..UR3
  bool left_out = false;           // a kernel whose records nobody wants
};

enum class Cause : uint8_t {
  kNone,            // none other than its own
  kKernel,          // the kernel `other` reaches it, and has no trampoline
  kBreaksState,     // it reaches `other`, which writes one of UR0..UR3
  kUnrecordedEnds,  // it reaches `other`, which ends warps and is not patched
  kEntangled,       // kMaxRounds were not enough
};
struct Decision {
  bool patch =
      false;  // rewrite it: a kernel with a trampoline, a function with its sites and exits
  bool refused = false;  // it would have been, but must not
  Cause cause = Cause::kNone;
  uint32_t other = 0;
};

inline constexpr int kMaxRounds = 64;

// The least set of refusals with which all of that holds. `graph` has at least a node for each of
// `nodes`; those beyond are mere passages.
std::vector<Decision> Decide(std::span<const CallNode> nodes, const CallGraph& graph);

}  // namespace iket::patch
