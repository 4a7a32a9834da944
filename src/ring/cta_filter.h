// cta_filter.h: which CTAs of a kernel are recorded, and how many of a grid that are.
//
// The patcher turns a filter into code at the kernel's entry; the reader counts with it what a
// launch must have left. A warp that is left out records like any other, but into a sink.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace iket::ring {

struct SmRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included

  bool operator==(const SmRange&) const = default;
};

// A CTA passes if it meets all of what is asked for.
struct CtaFilter {
  bool nobody = false;  // no CTA passes
  // The place of its cluster among the grid's clusters; where there are none, a CTA is one.
  std::optional<std::array<uint32_t, 3>> cluster{};
  uint32_t sample = 1;         // its linear number in the grid is a multiple of this; not 0
  std::vector<SmRange> sms{};  // it runs on one of these; empty: on any

  bool passes_all() const { return !nobody && !cluster && sample == 1 && sms.empty(); }
  bool operator==(const CtaFilter&) const = default;
};

// At the most so many ranges of SMs become code.
inline constexpr size_t kMaxSmRanges = 16;

// True if the filter lets this CTA of a grid pass, as far as that does not depend on its SM.
// `cluster` is how many CTAs a cluster has; 0 counts as 1.
bool Passes(const CtaFilter& filter, const std::array<uint32_t, 3>& cta,
            const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& cluster);

// How many CTAs of a grid pass. Nothing if that depends on where they run, or on more CTAs of one
// cluster than any GPU has. Cost: constant, or the CTAs of a cluster.
std::optional<uint64_t> PassingCtas(const CtaFilter& filter, const std::array<uint32_t, 3>& grid,
                                    const std::array<uint32_t, 3>& cluster);

}  // namespace iket::ring
