#include "inject/graph_nodes.h"

#include <mutex>
#include <set>

#include "inject/contexts.h"
#include "inject/driver.h"
#include "inject/launches.h"
#include "inject/never_destroyed.h"

namespace iket::inject {
namespace {

// Deeper than anybody nests graphs.
constexpr int kMaxDepth = 64;

// The list that `ask(array, &count)` gives; nothing where the driver refuses.
template <typename Ask>
bool List(const Ask& ask, std::vector<CUgraphNode>* nodes) {
  size_t count = 0;
  if (ask(nullptr, &count) != CUDA_SUCCESS) return false;
  nodes->resize(count);
  if (count > 0 && ask(nodes->data(), &count) != CUDA_SUCCESS) return false;
  nodes->resize(count);
  return true;
}

// The driver does not tell a conditional node's bodies.
struct Bodies {
  std::mutex mutex;
  std::map<CUgraphNode, std::vector<CUgraph>> of_node;
};
Bodies& KnownBodies() { return NeverDestroyed<Bodies>(); }

std::vector<CUgraph> BodiesOf(CUgraphNode node) {
  Bodies& known = KnownBodies();
  const std::lock_guard lock(known.mutex);
  const auto found = known.of_node.find(node);
  return found != known.of_node.end() ? found->second : std::vector<CUgraph>();
}

class Walk {
 public:
  explicit Walk(uint32_t first) : next_(first) {}

  // `conditional`: it is the body of a conditional node, or inside of one.
  void Graph(CUgraph graph, bool ordered, bool conditional, int depth) {
    std::vector<CUgraphNode> nodes;
    const bool listed = depth < kMaxDepth && List(
                                                 [&](CUgraphNode* array, size_t* count) {
                                                   return Real().GraphGetNodes(graph, array, count);
                                                 },
                                                 &nodes);
    found_.unstated |= !listed;
    // Of the nodes so far those on which no other of them depends: who depends on all of these
    // comes after all of them.
    std::set<CUgraphNode> last;
    for (CUgraphNode node : nodes) {
      std::vector<CUgraphNode> before;
      // Edges that let a node begin before the one before it has ended are refused here.
      if (List([&](CUgraphNode* array,
                   size_t* count) { return Real().GraphNodeGetDependencies(node, array, count); },
               &before)) {
        for (CUgraphNode one : before) last.erase(one);
      }
      Node(node, ordered && last.empty(), conditional, depth);
      last.insert(node);
    }
  }

  GraphNodes Take() {
    found_.end = next_;
    return std::move(found_);
  }

 private:
  void Node(CUgraphNode node, bool ordered, bool conditional, int depth) {
    const uint32_t number = next_++;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (Real().GraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      found_.unstated = true;
    } else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      const std::vector<CUgraph> bodies = BodiesOf(node);
      found_.unstated |= bodies.empty();
      // Of several bodies at the most one runs: none waits for another.
      for (CUgraph body : bodies) Graph(body, ordered, /*conditional=*/true, depth + 1);
    } else if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      found_.numbers[node] = number;
      Kernel(node, number, ordered, conditional);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      found_.numbers[node] = number;
      CUgraph child = nullptr;
      if (Real().GraphChildGetGraph(node, &child) == CUDA_SUCCESS) {
        Graph(child, ordered, conditional, depth + 1);
      } else {
        found_.unstated = true;
      }
    }
  }

  void Kernel(CUgraphNode node, uint32_t number, bool ordered, bool conditional) {
    CUDA_KERNEL_NODE_PARAMS params{};
    if (Real().GraphKernelGetParams(node, &params) != CUDA_SUCCESS) {
      found_.unstated = true;
      return;
    }
    capture::GraphNode row{.node = number,
                           .grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                           .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
                           .dynamic_shared_bytes = params.sharedMemBytes,
                           .ordered = ordered,
                           .uncounted = conditional,
                           .conditional = conditional};
    if (!FindNodeKernel(params.func, params.kern, &row.kernel)) return;
    CUlaunchAttributeValue value{};
    if (Real().GraphKernelGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) ==
        CUDA_SUCCESS) {
      row.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    }
    value = {};
    if (Real().GraphKernelGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
        CUDA_SUCCESS) {
      row.cooperative = value.cooperative != 0;
    }
    found_.kernels.push_back(row);
  }

  GraphNodes found_;
  uint32_t next_;
};

}  // namespace

GraphNodes AskGraphNodes(CUgraph graph, uint32_t first) {
  const RelaxedCapture relaxed;
  Walk walk(first);
  if (Real().knows_graphs) {
    walk.Graph(graph, true, false, 0);
    return walk.Take();
  }
  GraphNodes nothing;
  nothing.end = first;
  nothing.unstated = true;
  return nothing;
}

void RememberBodies(CUgraphNode node, const CUgraph* bodies, size_t count) noexcept {
  if (bodies == nullptr) return;
  try {
    Bodies& known = KnownBodies();
    const std::lock_guard lock(known.mutex);
    known.of_node[node].assign(bodies, bodies + count);
  } catch (...) {
    return;  // what they run counts as not stated
  }
}

bool FindNodeKernel(CUfunction function, CUkernel kernel, uint32_t* number) noexcept {
  if (LookUpKernel(function, number)) return true;
  if (function == nullptr) {
    if (LookUpKernel(kernel, number)) return true;
    // A handle that no hook has given out.
    if (kernel == nullptr || Real().KernelGetFunction == nullptr ||
        Real().KernelGetFunction(&function, kernel) != CUDA_SUCCESS) {
      return false;
    }
  }
  return FindKernel(function, number);
}

}  // namespace iket::inject
