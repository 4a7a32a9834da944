#include "trace/launches.h"

#include <algorithm>
#include <optional>

namespace iket::trace {
namespace {

// The difference of %gridid and sequence number that matches agree on.
class Difference {
 public:
  void Add(uint32_t one) {
    agrees_ &= !value_ || *value_ == one;
    value_ = one;
  }
  std::optional<uint32_t> value() const { return agrees_ ? value_ : std::nullopt; }

 private:
  std::optional<uint32_t> value_;
  bool agrees_ = true;
};

}  // namespace

LaunchLog::LaunchLog(const capture::Capture& facts, const RunLog& runs) : facts_(facts) {
  for (uint32_t i = 0; i < facts.launches.size(); ++i) {
    const capture::Launch& launch = facts.launches[i];
    if (launch.failed || launch.left_out) continue;
    const auto [entry, is_new] = contexts_.try_emplace(launch.context);
    Context& context = entry->second;
    if (is_new) {
      context.graphs = runs.HasGraphs(launch.context);
      context.unstated = runs.Unstated(launch.context);
    }
    Kernel& kernel = context.kernels[launch.kernel];
    if (kernel.shape == kNoRow) {
      kernel.shape = i;
    } else {
      const capture::Launch& other = facts.launches[kernel.shape];
      kernel.one_shape &= other.grid == launch.grid && other.block == launch.block &&
                          other.cluster == launch.cluster;
    }
    if (launch.graph) {
      context.graphs = kernel.captured = true;
      continue;
    }
    kernel.captured = kernel.captured || runs.Has(launch.context, launch.kernel);
    kernel.launches.push_back(i);
    const capture::Kernel* known = facts.FindKernel(launch.kernel);
    const bool leaves_records = known != nullptr && launch.context != capture::kNoContext &&
                                known->state == capture::KernelState::kPatched;
    if (leaves_records) context.launches.push_back(i);
    expected_ += leaves_records ? 1 : 0;
  }
  auto sequence = [&](uint32_t i) { return facts.launches[i].sequence; };
  for (auto& [index, context] : contexts_) {
    std::ranges::stable_sort(context.launches, {}, sequence);
    for (auto& [number, kernel] : context.kernels) {
      std::ranges::stable_sort(kernel.launches, {}, sequence);
    }
  }
}

uint32_t LaunchLog::Sequence(uint32_t launch) const {
  return static_cast<uint32_t>(facts_.launches[launch].sequence);
}

void LaunchLog::LostRecords(uint32_t context) {
  if (const auto found = contexts_.find(context); found != contexts_.end()) {
    found->second.lossy = true;
  }
}

void LaunchLog::NoneEnded(uint32_t context) {
  if (const auto found = contexts_.find(context); found != contexts_.end()) {
    found->second.none_ended = true;
  }
}

bool LaunchLog::InOneStream(const Context& context) const {
  const uint64_t stream = facts_.launches[context.launches.front()].stream;
  return stream != kPerThreadStream && std::ranges::all_of(context.launches, [&](uint32_t launch) {
           return facts_.launches[launch].stream == stream;
         });
}

std::vector<uint32_t> LaunchLog::Match(std::span<const Grid> grids) const {
  std::vector<uint32_t> matches(grids.size(), kNoRow);
  for (size_t begin = 0; begin < grids.size();) {
    size_t end = begin;
    while (end < grids.size() && grids[end].context == grids[begin].context) ++end;
    if (const auto context = contexts_.find(grids[begin].context); context != contexts_.end()) {
      MatchContext(context->second, grids.subspan(begin, end - begin),
                   std::span(matches).subspan(begin, end - begin));
    }
    begin = end;
  }
  return matches;
}

void LaunchLog::MatchContext(const Context& context, std::span<const Grid> grids,
                             std::span<uint32_t> matches) const {
  if (context.unstated && context.lossy) return;
  Difference difference;
  auto match = [&](size_t grid, uint32_t launch) {
    matches[grid] = launch;
    difference.Add(grids[grid].grid_id - Sequence(launch));
  };

  bool all_fit = !context.graphs && grids.size() == context.launches.size();
  for (size_t i = 0; all_fit && i < grids.size(); ++i) {
    const uint32_t kernel = facts_.launches[context.launches[i]].kernel;
    all_fit = grids[i].kernel == kNoRow || grids[i].kernel == kernel;
  }
  if (all_fit) {
    for (size_t i = 0; i < grids.size(); ++i) match(i, context.launches[i]);
    return;
  }

  if (context.none_ended && !context.graphs && grids.size() == 1 && !context.launches.empty() &&
      InOneStream(context)) {
    const uint32_t first = context.launches.front();
    if (grids[0].kernel == kNoRow || grids[0].kernel == facts_.launches[first].kernel) {
      match(0, first);
      return;
    }
  }

  std::map<uint32_t, std::vector<size_t>> grids_of_kernel;
  for (size_t i = 0; i < grids.size(); ++i) grids_of_kernel[grids[i].kernel].push_back(i);
  const bool kernels_known = !grids_of_kernel.contains(kNoRow);
  struct Unsure {
    const std::vector<size_t>* grids;
    const std::vector<uint32_t>* launches;
  };
  std::vector<Unsure> unsure;
  for (const auto& [number, members] : grids_of_kernel) {
    const auto kernel = context.kernels.find(number);
    const std::vector<uint32_t>* launches = kernel != context.kernels.end()
                                                ? &kernel->second.launches
                                            : number == kNoRow ? &context.launches
                                                               : nullptr;
    if (launches == nullptr) continue;
    const bool captured = kernel != context.kernels.end() && kernel->second.captured;
    if (kernels_known && !captured && launches->size() == members.size()) {
      for (size_t i = 0; i < members.size(); ++i) match(members[i], (*launches)[i]);
    } else {
      unsure.push_back({&members, launches});
    }
  }

  if (context.graphs) return;
  const std::optional<uint32_t> known = difference.value();
  for (const Unsure& group : unsure) {
    const std::vector<uint32_t>& launches = *group.launches;
    const size_t count = group.grids->size();
    if (known) {
      for (size_t grid : *group.grids) {
        const uint32_t wanted = grids[grid].grid_id - *known;
        const auto launch =
            std::ranges::lower_bound(launches, wanted, {}, [&](uint32_t i) { return Sequence(i); });
        if (launch != launches.end() && Sequence(*launch) == wanted) matches[grid] = *launch;
      }
    } else if (count > 1 && count < launches.size()) {
      const auto newest = std::span(launches).last(count);
      Difference same;
      for (size_t i = 0; i < count; ++i) {
        same.Add(grids[(*group.grids)[i]].grid_id - Sequence(newest[i]));
      }
      if (!same.value()) continue;
      for (size_t i = 0; i < count; ++i) matches[(*group.grids)[i]] = newest[i];
    }
  }
}

uint32_t LaunchLog::SharedShape(uint32_t context, uint32_t kernel) const {
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return kNoRow;
  const auto entry = found->second.kernels.find(kernel);
  if (entry == found->second.kernels.end() || !entry->second.one_shape) return kNoRow;
  return entry->second.shape;
}

uint32_t LaunchLog::OnlyLaunch(uint32_t context) const {
  const auto found = contexts_.find(context);
  if (found == contexts_.end() || found->second.graphs) return kNoRow;
  return found->second.launches.size() == 1 ? found->second.launches.front() : kNoRow;
}

}  // namespace iket::trace
