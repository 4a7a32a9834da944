#include "trace/grids.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace iket::trace {
namespace {

// Numbers grids in the order in which they are met.
class GridNumbers {
 public:
  uint32_t Of(const Grid& grid) {
    // Warps of a grid come in rows: the one before is tried first.
    if (last_ == nullptr || last_->first != grid) {
      last_ = &*numbers_.try_emplace(grid, static_cast<uint32_t>(numbers_.size())).first;
    }
    return last_->second;
  }

  // The kernel of all warps with this context and %gridid that know theirs. kNoRow if none does, or
  // if they differ: nodes of a graph may share a %gridid.
  uint32_t KernelOf(uint32_t context, uint32_t grid_id) const {
    uint32_t kernel = kNoRow;
    for (auto entry = numbers_.lower_bound({context, grid_id, 0});
         entry != numbers_.end() && entry->first.context == context &&
         entry->first.grid_id == grid_id && entry->first.kernel != kNoRow;
         ++entry) {
      if (kernel != kNoRow) return kNoRow;
      kernel = entry->first.kernel;
    }
    return kernel;
  }

  // Moves the grids out, sorted, and turns `numbers` into indexes of them.
  std::vector<Grid> Sorted(Column<uint32_t>& numbers) const {
    std::vector<Grid> grids;
    std::vector<uint32_t> index(numbers_.size());
    for (const auto& [grid, number] : numbers_) {
      index[number] = static_cast<uint32_t>(grids.size());
      grids.push_back(grid);
    }
    for (uint32_t& number : numbers) number = number == kNoRow ? kNoRow : index[number];
    return grids;
  }

 private:
  std::map<Grid, uint32_t> numbers_;
  const std::pair<const Grid, uint32_t>* last_ = nullptr;
};

}  // namespace

uint64_t Grids::Matched() const {
  uint64_t matched = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    matched += matches[i] != kNoRow || (i < runs.size() && runs[i].of_log) ? 1 : 0;
  }
  return matched;
}

uint64_t Grids::Promised() const {
  return Matched() - static_cast<uint64_t>(std::ranges::count_if(
                         runs, [](const GridRun& run) { return run.of_log && run.conditional; }));
}

Grids FindGrids(std::span<const WarpSpan> spans, std::span<const uint32_t> context_of_ring,
                const LaunchLog& log) {
  Grids result;
  GridNumbers numbers;
  result.grid_of_span.assign(spans.size(), kNoRow);
  std::vector<uint32_t> without_kernel, without_identity;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const WarpSpan& span = spans[i];
    if (!span.has_identity) {
      without_identity.push_back(i);
    } else if (span.kernel_number == kNoRow) {
      without_kernel.push_back(i);
    } else {
      result.grid_of_span[i] =
          numbers.Of({context_of_ring[span.ring], span.identity.grid, span.kernel_number});
    }
  }
  for (uint32_t i : without_kernel) {
    const uint32_t context = context_of_ring[spans[i].ring];
    const uint32_t grid_id = spans[i].identity.grid;
    result.grid_of_span[i] = numbers.Of({context, grid_id, numbers.KernelOf(context, grid_id)});
  }
  result.grids = numbers.Sorted(result.grid_of_span);
  result.identified = result.grids.size();
  result.matches = log.Match(result.grids);

  std::map<uint32_t, uint32_t> homes;  // context -> grid
  for (uint32_t i : without_identity) {
    const uint32_t context = context_of_ring[spans[i].ring];
    const auto [home, is_new] =
        homes.try_emplace(context, static_cast<uint32_t>(result.grids.size()));
    if (is_new) {
      const uint32_t only = log.OnlyLaunch(context);
      const auto seen =
          only == kNoRow ? result.matches.end() : std::ranges::find(result.matches, only);
      if (seen != result.matches.end()) {
        home->second = static_cast<uint32_t>(seen - result.matches.begin());
      } else {
        result.grids.push_back({context, 0, kNoRow});
        result.matches.push_back(kNoRow);
      }
    }
    result.grid_of_span[i] = home->second;
  }
  return result;
}

}  // namespace iket::trace
