#include "inject/graph_nodes.h"

#include <set>

#include "inject/contexts.h"
#include "inject/driver.h"
#include "inject/launches.h"

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

class Walk {
 public:
  explicit Walk(uint32_t first) : next_(first) {}

  void Graph(CUgraph graph, bool ordered, int depth) {
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
      Node(node, ordered && last.empty(), depth);
      last.insert(node);
    }
  }

  GraphNodes Take() {
    found_.end = next_;
    return std::move(found_);
  }

 private:
  void Node(CUgraphNode node, bool ordered, int depth) {
    const uint32_t number = next_++;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (Real().GraphNodeGetType(node, &type) != CUDA_SUCCESS ||
        type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      found_.unstated = true;
    } else if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      found_.numbers[node] = number;
      Kernel(node, number, ordered);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      found_.numbers[node] = number;
      CUgraph child = nullptr;
      if (Real().GraphChildGetGraph(node, &child) == CUDA_SUCCESS) {
        Graph(child, ordered, depth + 1);
      } else {
        found_.unstated = true;
      }
    }
  }

  void Kernel(CUgraphNode node, uint32_t number, bool ordered) {
    CUDA_KERNEL_NODE_PARAMS params{};
    if (Real().GraphKernelGetParams(node, &params) != CUDA_SUCCESS) {
      found_.unstated = true;
      return;
    }
    capture::GraphNode row{.node = number,
                           .grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                           .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
                           .dynamic_shared_bytes = params.sharedMemBytes,
                           .ordered = ordered};
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
    walk.Graph(graph, true, 0);
    return walk.Take();
  }
  GraphNodes nothing;
  nothing.end = first;
  nothing.unstated = true;
  return nothing;
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
