// runs.h: what the host's log says of the kernels that graphs launch. Private to the room.
//
// A run is one execution of a kernel that the log promises: a launch of the kernel itself, or a
// node in one launch of an executable graph. Runs are listed for kernels that some launched graph
// has, or one that the device may launch; launches of all others are matched as launches.h says.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "capture/reader.h"
#include "trace/model.h"

namespace iket::trace {

struct Shape {
  capture::Dim3 grid{}, block{}, cluster{};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  const capture::KernelFilter* filter = nullptr;  // which of its CTAs were recorded; null: all

  bool operator==(const Shape&) const = default;
};

inline constexpr size_t kMaxShapes = 16;

// The handle of each thread's own default stream: not one stream.
inline constexpr uint64_t kPerThreadStream = 2;

struct Run {
  uint64_t sequence = 0;           // of the launch, of kernel or graph
  uint32_t launch = kNoRow;        // row of Capture::launches, or
  uint32_t graph_launch = kNoRow;  // row of Capture::graph_launches
  uint32_t graph = kNoRow;         // the executable graph
  uint32_t node = kNoRow;
  uint32_t replay = kNoRow;     // launches of the graph before this one
  uint32_t statement = kNoRow;  // row of Capture::graph_nodes that says so
  uint64_t stream = 0;
  bool ordered = false;  // it begins when all nodes with lower numbers have ended
  Shape shape{};
};

// A node that runs as often as something else than the host decides.
struct UncountedNode {
  uint32_t graph = kNoRow;
  uint32_t node = kNoRow;
  bool conditional = false;  // within the launches of the graph that are logged
  bool ordered = false;      // as in Run
  Shape shape{};

  bool operator==(const UncountedNode&) const = default;
};

// What all runs of one shape have in common: kNoRow where they differ.
struct ShapeRuns {
  Shape shape{};
  uint32_t graph = kNoRow;
  uint32_t node = kNoRow;
};

// All runs of one kernel in one context.
struct KernelRuns {
  uint64_t at_most = 0;     // how many there are; as many as `runs` has, if it is complete
  std::vector<Run> runs{};  // by sequence number, then node; empty if there are more than asked for
  // How often it ran is not known: some node of it is launched by other means than the log's, such
  // as these, if all of them were stated.
  bool uncounted = false;
  std::vector<UncountedNode> uncounted_nodes{};
  // Each run has ended before the next one in `runs` begins: one stream has them, or one executable
  // graph, which never runs beside itself; and the nodes of a graph depend on each other.
  bool in_a_row = false;
  std::vector<ShapeRuns> shapes{};  // that runs have; empty if they are more than kMaxShapes
};

class RunLog {
 public:
  explicit RunLog(const capture::Capture& facts);

  // True if some such graph runs the kernel in this context.
  bool Has(uint32_t context, uint32_t kernel) const { return sources_.contains({context, kernel}); }
  bool HasGraphs(uint32_t context) const { return launched_.contains(context); }
  // The graphs launched in this context have nodes that nobody stated: anything may have run.
  bool Unstated(uint32_t context) const;

  // The program had ended when its rings were read.
  bool ended() const { return !facts_.sessions.empty() && facts_.sessions.front().ended; }

  // `limit`: of more runs than this no list is made.
  KernelRuns Runs(uint32_t context, uint32_t kernel, uint64_t limit) const;

  // The launches of a graph in a context that were to be recorded, in order: of a run all but what
  // it ran.
  std::vector<Run> Replays(uint32_t context, uint32_t graph) const;

  // Runs of graph nodes that must have left records; an upper bound where graphs were changed.
  uint64_t expected() const { return expected_; }

 private:
  // What a node is, from a launch on.
  using Statements = std::vector<uint32_t>;  // rows of Capture::graph_nodes, by `since`
  struct Graph {
    std::map<uint32_t, Statements> nodes;
    std::vector<uint32_t> launches;  // rows of Capture::graph_launches, in order
    bool unstated = false;
  };
  struct Source {
    // {graph, node} that ever ran the kernel, as often as the log says.
    std::vector<std::pair<uint32_t, uint32_t>> nodes;
    std::vector<uint32_t> uncounted_nodes;  // rows of Capture::graph_nodes
    std::vector<uint32_t> launches;         // of the kernel itself: rows of Capture::launches
    bool uncounted = false;
    bool unstated = false;  // some node of it has no number
  };

  // A graph's launches in one context.
  struct Launched {
    uint64_t times = 0;
    uint64_t stream = 0;
    bool one_stream = true;
  };

  void FindSources();
  void FindSourcesByDevice();
  bool InARow(uint32_t context, uint32_t kernel, const Source& source) const;
  void AddNodeRuns(uint32_t context, uint32_t kernel, const Source& source,
                   std::vector<Run>& runs) const;

  const capture::Capture& facts_;
  std::map<uint32_t, Graph> graphs_;
  std::map<uint32_t, std::map<uint32_t, Launched>> launched_;  // context -> graph
  std::map<std::pair<uint32_t, uint32_t>, Source> sources_;    // {context, kernel}
  uint64_t expected_ = 0;
  bool given_up_ = false;  // so many nodes in so many contexts that nobody's log has them
};

}  // namespace iket::trace
