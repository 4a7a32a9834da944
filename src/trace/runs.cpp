#include "trace/runs.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace iket::trace {
namespace {

template <typename Row>
Shape ShapeOf(const capture::Capture& facts, const Row& row) {
  return {.grid = row.grid,
          .block = row.block,
          .cluster = row.cluster,
          .dynamic_shared_bytes = row.dynamic_shared_bytes,
          .cooperative = row.cooperative,
          .filter = facts.FindFilter(row.kernel)};
}

// Above this a file is not what any program left behind: reading it shall not take for ever.
constexpr uint64_t kMaxStatements = uint64_t{1} << 26;

// Notes a run of this shape.
void AddShape(const Shape& shape, uint32_t graph, uint32_t node, std::vector<ShapeRuns>& shapes) {
  const auto known = std::ranges::find(shapes, shape, &ShapeRuns::shape);
  if (known == shapes.end()) {
    if (shapes.size() <= kMaxShapes) shapes.push_back({shape, graph, node});
    return;
  }
  if (known->graph != graph) known->graph = known->node = kNoRow;
  if (known->node != node) known->node = kNoRow;
}

}  // namespace

RunLog::RunLog(const capture::Capture& facts) : facts_(facts) {
  for (uint32_t i = 0; i < facts.graph_nodes.size(); ++i) {
    const capture::GraphNode& row = facts.graph_nodes[i];
    Graph& graph = graphs_[row.graph];
    graph.nodes[row.node].push_back(i);
    graph.unstated |= row.node == capture::kNoNode && row.kernel == capture::kNoKernel;
  }
  for (auto& [number, graph] : graphs_) {
    for (auto& [node, statements] : graph.nodes) {
      std::ranges::stable_sort(statements, {},
                               [&](uint32_t i) { return facts.graph_nodes[i].since; });
    }
  }
  for (uint32_t i = 0; i < facts.graph_launches.size(); ++i) {
    const capture::GraphLaunch& launch = facts.graph_launches[i];
    if (launch.failed || launch.captured) continue;
    graphs_[launch.graph].launches.push_back(i);
    if (launch.context == capture::kNoContext) continue;
    if (launch.left_out) continue;
    Launched& launched = launched_[launch.context][launch.graph];
    launched.one_stream &= launched.times == 0 || launched.stream == launch.stream;
    launched.stream = launch.stream;
    ++launched.times;
  }
  for (auto& [number, graph] : graphs_) {
    std::ranges::stable_sort(graph.launches, {},
                             [&](uint32_t i) { return facts.graph_launches[i].sequence; });
  }
  FindSources();
  FindSourcesByDevice();
  for (uint32_t i = 0; i < facts.launches.size(); ++i) {
    const capture::Launch& launch = facts.launches[i];
    if (launch.graph || launch.failed || launch.left_out) continue;
    const auto source = sources_.find({launch.context, launch.kernel});
    if (source != sources_.end()) source->second.launches.push_back(i);
  }
  for (const auto& [key, source] : sources_) {
    const capture::Kernel* kernel = facts.FindKernel(key.second);
    if (kernel == nullptr || kernel->state != capture::KernelState::kPatched) continue;
    for (const auto& [graph, node] : source.nodes) expected_ += launched_[key.first][graph].times;
  }
}

void RunLog::FindSources() {
  uint64_t work = 0;
  for (const auto& [context, launched] : launched_) {
    for (const auto& [number, launches] : launched) {
      for (const auto& [node, statements] : graphs_.at(number).nodes) {
        work += statements.size();
        given_up_ |= work > kMaxStatements;
        if (given_up_) return;
        for (uint32_t row : statements) {
          const capture::GraphNode& stated = facts_.graph_nodes[row];
          if (stated.kernel == capture::kNoKernel) continue;
          Source& source = sources_[{context, stated.kernel}];
          source.uncounted |= stated.uncounted;
          source.unstated |= node == capture::kNoNode;
          if (node == capture::kNoNode) continue;
          if (stated.uncounted) {
            source.uncounted_nodes.push_back(row);
            continue;
          }
          const std::pair key(number, node);
          if (source.nodes.empty() || source.nodes.back() != key) source.nodes.push_back(key);
        }
      }
    }
  }
}

// Graphs that the host never launched, but the device may have. In which context nobody says; so
// only where there is just one.
void RunLog::FindSourcesByDevice() {
  if (facts_.contexts.size() != 1) return;
  const uint32_t context = facts_.contexts.front().index;
  for (uint32_t row = 0; row < facts_.graph_nodes.size(); ++row) {
    const capture::GraphNode& stated = facts_.graph_nodes[row];
    if (!stated.uncounted || stated.conditional || stated.kernel == capture::kNoKernel ||
        stated.node == capture::kNoNode || !graphs_.at(stated.graph).launches.empty()) {
      continue;
    }
    Source& source = sources_[{context, stated.kernel}];
    source.uncounted = true;
    source.uncounted_nodes.push_back(row);
  }
}

bool RunLog::Unstated(uint32_t context) const {
  const auto launched = launched_.find(context);
  if (given_up_) return true;
  return launched != launched_.end() &&
         std::ranges::any_of(launched->second,
                             [&](const auto& entry) { return graphs_.at(entry.first).unstated; });
}

KernelRuns RunLog::Runs(uint32_t context, uint32_t kernel, uint64_t limit) const {
  KernelRuns found;
  const auto source = sources_.find({context, kernel});
  if (source == sources_.end()) return found;
  found.uncounted = source->second.uncounted;
  if (!source->second.unstated) {
    for (uint32_t row : source->second.uncounted_nodes) {
      const capture::GraphNode& stated = facts_.graph_nodes[row];
      const UncountedNode node{.graph = stated.graph,
                               .node = stated.node,
                               .conditional = stated.conditional,
                               .ordered = stated.ordered,
                               .shape = ShapeOf(facts_, stated)};
      if (std::ranges::find(found.uncounted_nodes, node) == found.uncounted_nodes.end()) {
        found.uncounted_nodes.push_back(node);
      }
    }
  }
  found.in_a_row = InARow(context, kernel, source->second);
  std::vector<Run> runs;
  for (uint32_t i : source->second.launches) {
    const capture::Launch& launch = facts_.launches[i];
    runs.push_back({.sequence = launch.sequence,
                    .launch = i,
                    .stream = launch.stream,
                    .shape = ShapeOf(facts_, launch)});
    AddShape(runs.back().shape, kNoRow, kNoRow, found.shapes);
  }
  found.at_most = runs.size();
  for (const auto& [number, node] : source->second.nodes) {
    found.at_most += launched_.at(context).at(number).times;
    for (uint32_t row : graphs_.at(number).nodes.at(node)) {
      const capture::GraphNode& stated = facts_.graph_nodes[row];
      if (stated.kernel == kernel) AddShape(ShapeOf(facts_, stated), number, node, found.shapes);
    }
  }
  if (found.shapes.size() > kMaxShapes) found.shapes.clear();
  if (found.at_most > limit) return found;
  AddNodeRuns(context, kernel, source->second, runs);
  std::ranges::stable_sort(runs, {},
                           [](const Run& run) { return std::tuple(run.sequence, run.node); });
  found.at_most = runs.size();
  found.runs = std::move(runs);
  return found;
}

std::vector<Run> RunLog::Replays(uint32_t context, uint32_t graph) const {
  std::vector<Run> found;
  const auto known = graphs_.find(graph);
  if (known == graphs_.end()) return found;
  const std::vector<uint32_t>& launches = known->second.launches;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    const capture::GraphLaunch& launch = facts_.graph_launches[launches[i]];
    if (launch.context != context || launch.left_out) continue;
    found.push_back({.sequence = launch.sequence,
                     .graph_launch = launches[i],
                     .graph = graph,
                     .replay = i,
                     .stream = launch.stream});
  }
  return found;
}

bool RunLog::InARow(uint32_t context, uint32_t kernel, const Source& source) const {
  bool one_graph = source.launches.empty(), one_stream = true;
  std::optional<uint64_t> stream;
  const auto runs_in = [&](uint64_t handle) {
    one_stream &= handle != kPerThreadStream && (!stream || *stream == handle);
    stream = handle;
  };
  for (uint32_t i : source.launches) runs_in(facts_.launches[i].stream);
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    const auto& [number, node] = source.nodes[i];
    const Launched& launched = launched_.at(context).at(number);
    one_stream &= launched.one_stream;
    runs_in(launched.stream);
    if (i == 0) continue;
    if (source.nodes[i - 1].first != number) {
      one_graph = false;
      continue;
    }
    for (uint32_t row : graphs_.at(number).nodes.at(node)) {
      const capture::GraphNode& stated = facts_.graph_nodes[row];
      if (stated.kernel == kernel && !stated.ordered) return false;
    }
  }
  return one_graph || one_stream;
}

void RunLog::AddNodeRuns(uint32_t context, uint32_t kernel, const Source& source,
                         std::vector<Run>& runs) const {
  for (const auto& [number, node] : source.nodes) {
    const Graph& graph = graphs_.at(number);
    const Statements& statements = graph.nodes.at(node);
    size_t next = 0;
    for (uint32_t replay = 0; replay < graph.launches.size(); ++replay) {
      const capture::GraphLaunch& launch = facts_.graph_launches[graph.launches[replay]];
      while (next < statements.size() &&
             facts_.graph_nodes[statements[next]].since <= launch.sequence) {
        ++next;
      }
      if (next == 0 || launch.context != context || launch.left_out) continue;
      const capture::GraphNode& now = facts_.graph_nodes[statements[next - 1]];
      if (now.kernel != kernel || now.disabled) continue;
      runs.push_back({.sequence = launch.sequence,
                      .graph_launch = graph.launches[replay],
                      .graph = number,
                      .node = node,
                      .replay = replay,
                      .statement = statements[next - 1],
                      .stream = launch.stream,
                      .ordered = now.ordered,
                      .shape = ShapeOf(facts_, now)});
    }
  }
}

}  // namespace iket::trace
