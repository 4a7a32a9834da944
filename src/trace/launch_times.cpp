#include "trace/launch_times.h"

#include <algorithm>
#include <limits>

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
  for (auto* const all : {&of_kernels_, &of_graphs_}) {
    for (auto& [key, times] : *all) {
      std::ranges::sort(times);
      int64_t& last = last_of_context_.try_emplace(key.first, times.back()).first->second;
      last = std::max(last, times.back());
    }
  }
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

std::optional<int64_t> LaunchTimes::LastOfContext(uint32_t context, uint32_t kernel) const {
  const auto last = LatestBy(context, kernel, std::numeric_limits<int64_t>::max());
  const auto of_context = last_of_context_.find(context);
  if (!last || of_context == last_of_context_.end() || of_context->second != *last) return {};
  return last;
}

}  // namespace iket::trace
