#include "inject/graphs.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "inject/contexts.h"
#include "inject/graph_nodes.h"
#include "inject/guest.h"
#include "inject/never_destroyed.h"
#include "inject/say.h"
#include "session/finish.h"

namespace iket::inject {
namespace {

constexpr char kNoMemory[] = "out of memory; launches of a graph are recorded but not logged";

struct Exec {
  uint32_t number = 0;
  bool by_device = false;
  std::map<uint32_t, capture::GraphNode> kernels;  // what was stated last, by node
  // Of the nodes in the graph that it was made from, and in the one that it was updated from last:
  // calls that change a node may name either.
  std::map<CUgraphNode, uint32_t> numbers;
  std::map<CUgraphNode, uint32_t> updated;

  // kNoNode if no such node is known.
  uint32_t NumberOf(CUgraphNode node) const {
    for (const auto* known : {&updated, &numbers}) {
      if (const auto found = known->find(node); found != known->end()) return found->second;
    }
    return capture::kNoNode;
  }
};
using Execs = std::map<CUgraphExec, Exec>;
using Rows = std::vector<capture::GraphNode>;

// Guards all below. Never held across a driver call.
std::mutex g_mutex;
uint32_t g_next_number = 0;
std::atomic<uint32_t> g_known{0};
Execs& KnownExecs() { return NeverDestroyed<Execs>(); }

// With the mutex held.
Exec& Register(CUgraphExec handle, bool by_device) {
  Exec& known = KnownExecs()[handle] = Exec{};
  known.number = g_next_number;
  known.by_device = by_device;
  ++g_next_number;
  g_known.store(static_cast<uint32_t>(KnownExecs().size()), std::memory_order_release);
  return known;
}

// With the mutex held: remembers what a node does from now on; a row of it if that is new.
void State(Exec& exec, capture::GraphNode now, Rows* rows) {
  now.graph = exec.number;
  now.since = 0;
  now.uncounted |= exec.by_device;
  now.conditional &= !exec.by_device;
  const auto [known, is_new] = exec.kernels.try_emplace(now.node, now);
  if (!is_new) {
    if (now.node == capture::kNoNode && known->second.kernel == capture::kNoKernel) return;
    if (known->second == now) return;
    known->second = now;
  }
  rows->push_back(now);
}

void StateUnstated(Exec& exec, uint32_t kernel, Rows* rows) {
  State(exec, {.kernel = kernel, .uncounted = true}, rows);
}

// With the mutex held: the nodes numbered from `first` to before `end` are those of `found`.
void StateAll(Exec& exec, const GraphNodes& found, uint64_t first, uint64_t end, Rows* rows) {
  std::map<uint32_t, capture::GraphNode> gone;
  for (const auto& [node, row] : exec.kernels) {
    if (node != capture::kNoNode && node >= first && node < end) gone.emplace(node, row);
  }
  for (capture::GraphNode now : found.kernels) {
    if (const auto before = gone.find(now.node); before != gone.end()) {
      now.disabled = before->second.disabled;
      gone.erase(before);
    }
    State(exec, now, rows);
  }
  for (auto& [node, row] : gone) {
    row.kernel = capture::kNoKernel;
    State(exec, row, rows);
  }
  if (found.unstated) StateUnstated(exec, capture::kNoKernel, rows);
}

void Write(Guest& guest, Rows rows) {
  if (rows.empty()) return;
  session::LaunchLog* log = guest.launch_log();
  const uint64_t since = log != nullptr ? log->next_sequence() : 0;
  for (capture::GraphNode& row : rows) row.since = since;
  guest.Append(std::span<const capture::GraphNode>(rows));
}

// Runs `change(exec, &rows)` on a known executable graph and writes down what it stated.
template <typename Change>
void ChangeKnown(CUgraphExec handle, const Change& change) noexcept {
  Guest* guest = Guest::Existing();
  if (guest == nullptr || g_known.load(std::memory_order_acquire) == 0) return;
  try {
    Rows rows;
    {
      const std::lock_guard lock(g_mutex);
      const auto found = KnownExecs().find(handle);
      if (found == KnownExecs().end()) return;
      change(found->second, &rows);
    }
    Write(*guest, std::move(rows));
  } catch (...) {
    Say(kNoMemory);
  }
}

bool Tells(const GraphNodes& found) { return !found.kernels.empty() || found.unstated; }

}  // namespace

void GraphInstantiated(CUgraphExec handle, CUgraph graph, bool by_device) noexcept {
  Guest* guest = Guest::Existing();
  if (guest == nullptr) return;
  GraphDestroyed(handle);  // of one that had this handle
  try {
    GraphNodes found = AskGraphNodes(graph);
    if (!Tells(found)) return;
    Rows rows;
    {
      const std::lock_guard lock(g_mutex);
      Exec& exec = Register(handle, by_device);
      StateAll(exec, found, 0, capture::kNoNode, &rows);
      exec.numbers = std::move(found.numbers);
    }
    Write(*guest, std::move(rows));
  } catch (...) {
    Say(kNoMemory);
  }
}

void GraphUpdated(CUgraphExec handle, CUgraph graph) noexcept {
  Guest* guest = Guest::Existing();
  if (guest == nullptr) return;
  try {
    GraphNodes found = AskGraphNodes(graph);
    Rows rows;
    {
      const std::lock_guard lock(g_mutex);
      const auto known = KnownExecs().find(handle);
      if (known == KnownExecs().end() && !Tells(found)) return;
      Exec& exec = known != KnownExecs().end() ? known->second : Register(handle, false);
      StateAll(exec, found, 0, capture::kNoNode, &rows);
      exec.updated = std::move(found.numbers);
    }
    Write(*guest, std::move(rows));
  } catch (...) {
    Say(kNoMemory);
  }
}

void GraphDestroyed(CUgraphExec handle) noexcept {
  if (g_known.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(g_mutex);
  KnownExecs().erase(handle);
  g_known.store(static_cast<uint32_t>(KnownExecs().size()), std::memory_order_release);
}

void GraphKernelChanged(CUgraphExec handle, CUgraphNode node, CUfunction function, CUkernel kernel,
                        const LaunchShape& shape) noexcept {
  Guest* guest = Guest::Existing();
  if (guest == nullptr) return;
  uint32_t number = capture::kNoKernel;
  const bool traced = FindNodeKernel(function, kernel, &number);
  if (!traced) number = capture::kNoKernel;
  try {
    Rows rows;
    {
      const std::lock_guard lock(g_mutex);
      const auto known = KnownExecs().find(handle);
      if (known == KnownExecs().end() && !traced) return;
      Exec& exec = known != KnownExecs().end() ? known->second : Register(handle, false);
      const uint32_t numbered = exec.NumberOf(node);
      if (numbered == capture::kNoNode) {
        // Of a graph that was without traced kernels: which node it is was not asked for.
        if (traced) StateUnstated(exec, number, &rows);
      } else {
        const auto before = exec.kernels.find(numbered);
        if (before == exec.kernels.end() && !traced) return;
        // What these parameters do not have stays as it was.
        capture::GraphNode now{.node = numbered};
        if (before != exec.kernels.end()) now = before->second;
        now.kernel = number;
        now.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
        now.block = {shape.block[0], shape.block[1], shape.block[2]};
        now.dynamic_shared_bytes = shape.dynamic_shared_bytes;
        State(exec, now, &rows);
      }
    }
    Write(*guest, std::move(rows));
  } catch (...) {
    Say(kNoMemory);
  }
}

void GraphChildChanged(CUgraphExec handle, CUgraphNode node, CUgraph child) noexcept {
  if (g_known.load(std::memory_order_acquire) == 0) return;
  uint32_t number = capture::kNoNode;
  ChangeKnown(handle, [&](Exec& exec, Rows* rows) {
    number = exec.NumberOf(node);
    if (number == capture::kNoNode) StateUnstated(exec, capture::kNoKernel, rows);
  });
  if (number == capture::kNoNode) return;
  try {
    // The new child has as many nodes as the old one, in the same order. It is copied: its own
    // handles mean nothing to the executable graph.
    GraphNodes found = AskGraphNodes(child, number + 1);
    ChangeKnown(handle, [&](Exec& exec, Rows* rows) {
      for (capture::GraphNode& now : found.kernels) {
        const auto before = exec.kernels.find(now.node);
        now.ordered = before != exec.kernels.end() && before->second.ordered;
      }
      StateAll(exec, found, number + 1, found.end, rows);
    });
  } catch (...) {
    Say(kNoMemory);
  }
}

void GraphNodeEnabled(CUgraphExec handle, CUgraphNode node, bool enabled) noexcept {
  ChangeKnown(handle, [&](Exec& exec, Rows* rows) {
    const uint32_t numbered = exec.NumberOf(node);
    if (numbered == capture::kNoNode) return;
    const auto before = exec.kernels.find(numbered);
    if (before == exec.kernels.end()) return;
    capture::GraphNode now = before->second;
    now.disabled = !enabled;
    State(exec, now, rows);
  });
}

Launching BeforeGraphLaunch(CUgraphExec handle, CUstream stream) noexcept {
  const Arming arming = ArmCurrentContext();
  if (arming.result != CUDA_SUCCESS) return {.result = arming.result};
  if (g_known.load(std::memory_order_acquire) == 0) {
    NoteUnloggedLaunch();
    return {};
  }
  uint32_t number = 0;
  {
    const std::lock_guard lock(g_mutex);
    const auto known = KnownExecs().find(handle);
    if (known == KnownExecs().end()) {
      NoteUnloggedLaunch();
      return {};
    }
    number = known->second.number;
  }
  Launching launching{.on_its_way = OnItsWay::Begin()};
  launching.entry = NewEntry(arming.context, stream, session::kLaunchOfGraph, launching.turn);
  session::LaunchEntry* const entry = launching.entry;
  if (entry == nullptr) return launching;
  entry->kernel = capture::kNoKernel;
  entry->graph = number;
  entry->state.store(1, std::memory_order_release);
  return launching;
}

}  // namespace iket::inject
