// edge_links.h: which moment each declared dependency (Model::edges) led from and to.
//
// An edge says that one name depends on another by design, and no more. What it leads from is where
// a range of that name ends, or a mark; what it leads to is where a range of the other name begins,
// or ends where it began too early: then it waited inside. Pairs are made within a CTA:
//   - where the same warps have both names each warp is paired with itself, else each that has the
//     one with each that has the other (a producer with all its consumers);
//   - of two warps the n-th of the one with the n-th of the other, among those with the same
//   payload
//     where both have the same payloads equally often, else among all;
//   - of a name that depends on itself each with the next one of its warp.
// Two warps that have their names unequally often are not paired: rounds cannot be told apart. A
// pair that leads back in time is none. Both are counted, for nothing here is a guess.
//
// Cost: a pass over the ranges and marks, and what the pairs are.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::trace {

struct EdgeLink {
  uint32_t edge = 0;  // row of Model::edges
  uint32_t from = 0;  // rows of Model::events
  uint32_t to = 0;
};

// What became of one edge.
struct EdgeCounts {
  uint64_t from = 0, to = 0;  // ranges and marks of these names
  uint64_t linked = 0;
  uint64_t unequal = 0;   // pairs of warps that have the two unequally often
  uint64_t backward = 0;  // pairs whose target was over before
  uint64_t left_out = 0;  // that are more than kMostEdgeLinks
};

// More than this nobody looks at, and a capture must not ask for more memory.
inline constexpr size_t kMostEdgeLinks = 4'000'000;

struct EdgeLinks {
  std::vector<EdgeLink> links;     // by edge, launch and CTA
  std::vector<EdgeCounts> counts;  // by row of Model::edges
};

EdgeLinks LinkEdges(const Model& model);

}  // namespace iket::trace
