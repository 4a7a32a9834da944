#include "trace/launch_times.h"

#include <algorithm>

namespace iket::trace {

LaunchTimes::LaunchTimes(const capture::Capture& facts) {
  std::set<uint32_t> graphs_not_known;
  for (const capture::GraphNode& node : facts.graph_nodes) {
    if (node.kernel == capture::kNoKernel) {
      if (node.node == capture::kNoNode) graphs_not_known.insert(node.graph);
      continue;
    }
    graphs_of_kernel_[node.kernel].insert(node.graph);
    if (node.uncounted && !node.conditional) kernels_not_known_.insert(node.kernel);
  }
  for (const capture::Launch& launch : facts.launches) {
    if (launch.graph || launch.failed || launch.left_out) continue;
    of_kernels_[{launch.context, launch.kernel}].push_back(launch.host_ns);
  }
  for (const capture::GraphLaunch& launch : facts.graph_launches) {
    if (launch.captured || launch.failed || launch.left_out) continue;
    of_graphs_[{launch.context, launch.graph}].push_back(launch.host_ns);
    if (graphs_not_known.contains(launch.graph)) contexts_not_known_.insert(launch.context);
  }
  for (auto& [key, times] : of_kernels_) std::ranges::sort(times);
  for (auto& [key, times] : of_graphs_) std::ranges::sort(times);
}

template <typename Visit>
void LaunchTimes::ForEachTimes(uint32_t context, uint32_t kernel, const Visit& visit) const {
  if (kernels_not_known_.contains(kernel) || contexts_not_known_.contains(context)) return;
  const auto own = of_kernels_.find({context, kernel});
  if (own != of_kernels_.end()) visit(own->second);
  const auto graphs = graphs_of_kernel_.find(kernel);
  if (graphs == graphs_of_kernel_.end()) return;
  for (const uint32_t graph : graphs->second) {
    const auto times = of_graphs_.find({context, graph});
    if (times != of_graphs_.end()) visit(times->second);
  }
}

std::optional<int64_t> LaunchTimes::LatestBy(uint32_t context, uint32_t kernel,
                                             int64_t host_ns) const {
  std::optional<int64_t> latest;
  ForEachTimes(context, kernel, [&](const Times& times) {
    const auto next = std::ranges::upper_bound(times, host_ns);
    if (next == times.begin()) return;
    latest = std::max(latest.value_or(*std::prev(next)), *std::prev(next));
  });
  return latest;
}

std::optional<int64_t> LaunchTimes::First(uint32_t context, uint32_t kernel) const {
  std::optional<int64_t> first;
  ForEachTimes(context, kernel, [&](const Times& times) {
    first = std::min(first.value_or(times.front()), times.front());
  });
  return first;
}

}  // namespace iket::trace
