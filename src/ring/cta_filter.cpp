#include "ring/cta_filter.h"

#include <algorithm>

namespace iket::ring {
namespace {

constexpr uint64_t kMostCtasOfCluster = 1024;  // sm_90 has 16

// 32 bits, as the GPU computes it.
uint32_t LinearNumber(const std::array<uint32_t, 3>& cta, const std::array<uint32_t, 3>& grid) {
  return cta[0] + grid[0] * (cta[1] + grid[1] * cta[2]);
}

}  // namespace

bool Passes(const CtaFilter& filter, const std::array<uint32_t, 3>& cta,
            const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& cluster) {
  if (filter.nobody) return false;
  if (LinearNumber(cta, grid) % filter.sample != 0) return false;
  if (!filter.cluster) return true;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (cta[axis] / std::max(cluster[axis], 1u) != (*filter.cluster)[axis]) return false;
  }
  return true;
}

std::optional<uint64_t> PassingCtas(const CtaFilter& filter, const std::array<uint32_t, 3>& grid,
                                    const std::array<uint32_t, 3>& cluster) {
  if (filter.nobody) return 0;
  if (!filter.sms.empty()) return std::nullopt;
  uint64_t ctas = 1;
  for (const uint32_t size : grid) {
    if (__builtin_mul_overflow(ctas, size, &ctas)) return std::nullopt;
  }
  if (!filter.cluster) {
    if (ctas > uint64_t{1} << 32) return filter.sample == 1 ? std::optional(ctas) : std::nullopt;
    return (ctas + filter.sample - 1) / filter.sample;
  }
  std::array<uint64_t, 3> first{}, end{};
  uint64_t of_cluster = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t size = std::max(cluster[axis], 1u);
    first[axis] = std::min<uint64_t>((*filter.cluster)[axis] * size, grid[axis]);
    end[axis] = std::min<uint64_t>(first[axis] + size, grid[axis]);
    if (__builtin_mul_overflow(of_cluster, end[axis] - first[axis], &of_cluster)) {
      return std::nullopt;
    }
  }
  if (of_cluster > kMostCtasOfCluster) return std::nullopt;
  uint64_t passing = 0;
  for (uint64_t z = first[2]; z < end[2]; ++z) {
    for (uint64_t y = first[1]; y < end[1]; ++y) {
      for (uint64_t x = first[0]; x < end[0]; ++x) {
        passing +=
            Passes(filter,
                   {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)},
                   grid, cluster)
                ? 1
                : 0;
      }
    }
  }
  return passing;
}

}  // namespace iket::ring
