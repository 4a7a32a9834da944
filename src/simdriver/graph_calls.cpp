// Graphs as a whole: made, cloned, walked, instantiated, updated, launched.
#include <algorithm>
#include <cstring>

#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/graph.h"
#include "simdriver/graph_nodes.h"

namespace iket::simdriver {
namespace {

constexpr unsigned long long kInstantiateFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                                 CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                                 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(CUgraphExec* exec, CUgraph handle, unsigned long long flags) {
  return Call([&] {
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~kInstantiateFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto graph = Graphs::Get().Find(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph->InOrder().size() != graph->nodes().size()) return CUDA_ERROR_INVALID_VALUE;
    *exec = GraphExecs::Get().Add(std::make_shared<GraphExec>(*graph, flags));
    return CUDA_SUCCESS;
  });
}

CUresult InstantiateOld(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                        size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) log[0] = 0;
  return Instantiate(exec, graph, 0);
}

CUresult Update(CUgraphExec exec_handle, CUgraph handle, CUgraphExecUpdateResult* why,
                CUgraphNode* culprit) {
  return Call([&] {
    const auto exec = GraphExecs::Get().Find(exec_handle);
    const auto graph = Graphs::Get().Find(handle);
    if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphNode* node = nullptr;
    *why = exec->Update(*graph, &node);
    *culprit = node == nullptr ? nullptr : Nodes::HandleOf(node);
    return *why == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  });
}

// Fills a program's array: with `out` null it asks for the number alone.
void Return(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) {
      out[i] = i < nodes.size() ? Nodes::HandleOf(nodes[i]) : nullptr;
    }
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
}

template <typename Select>
CUresult ListNodes(CUgraph handle, CUgraphNode* out, size_t* count, const Select& select) noexcept {
  return Call([&]() -> CUresult {
    const auto graph = Graphs::Get().Find(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> selected;
    for (const auto& node : graph->nodes()) {
      if (select(*node)) selected.push_back(node.get());
    }
    Return(selected, out, count);
    return CUDA_SUCCESS;
  });
}

CUresult ListNeighbours(CUgraphNode handle, CUgraphNode* out, size_t* count,
                        std::vector<GraphNode*> GraphNode::* which) {
  return Call([&] {
    const auto node = Nodes::Get().Find(handle);
    if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Return((*node).*which, out, count);
    return CUDA_SUCCESS;
  });
}

CUresult ListEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return Call([&] {
    const auto graph = Graphs::Get().Find(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> begins, ends;
    for (const auto& node : graph->nodes()) {
      for (GraphNode* before : node->dependencies) {
        begins.push_back(before);
        ends.push_back(node.get());
      }
    }
    size_t room = *count;
    Return(begins, from, &room);
    Return(ends, to, count);
    return CUDA_SUCCESS;
  });
}

CUresult ChangeEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                     bool (Graph::*change)(GraphNode&, GraphNode&)) {
  return Call([&] {
    const auto graph = Graphs::Get().Find(handle);
    std::vector<GraphNode*> begins, ends;
    if (graph == nullptr || !FindNodes(*graph, from, count, &begins) ||
        !FindNodes(*graph, to, count, &ends)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
      if (!((*graph).*change)(*begins[i], *ends[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned reserved) {
  return Call([&] {
    if (graph == nullptr || reserved != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = Graphs::Get().Add(std::make_shared<Graph>());
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return Call([&] {
    return Graphs::Get().Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphClone(CUgraph* clone, CUgraph handle) {
  return Call([&] {
    const auto graph = Graphs::Get().Find(handle);
    if (clone == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *clone = Graphs::Get().Add(graph->Clone());
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  return Call([&] {
    const auto node = Nodes::Get().Find(original);
    const auto graph = Graphs::Get().Find(clone);
    if (found == nullptr || node == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& twin : graph->nodes()) {
      if (graph->OriginalOf(*twin) != node->number) continue;
      *found = Nodes::HandleOf(twin.get());
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

// --- walking -------------------------------------------------------------------------------------

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count, [](const GraphNode&) { return true; });
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count,
                   [](const GraphNode& node) { return node.dependencies.empty(); });
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return ListEdges(graph, from, to, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  if (data != nullptr && count != nullptr) std::memset(data, 0, *count * sizeof *data);
  return ListEdges(graph, from, to, count);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return ListNeighbours(node, nodes, count, &GraphNode::dependencies);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       size_t* count) {
  if (data != nullptr && count != nullptr) std::memset(data, 0, *count * sizeof *data);
  return ListNeighbours(node, nodes, count, &GraphNode::dependencies);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return ListNeighbours(node, nodes, count, &GraphNode::dependents);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, size_t* count) {
  if (data != nullptr && count != nullptr) std::memset(data, 0, *count * sizeof *data);
  return ListNeighbours(node, nodes, count, &GraphNode::dependents);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return ChangeEdges(graph, from, to, count, &Graph::Connect);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, &Graph::Connect);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return ChangeEdges(graph, from, to, count, &Graph::Disconnect);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, &Graph::Disconnect);
}

// --- running -------------------------------------------------------------------------------------

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t log_bytes) {
  return InstantiateOld(exec, graph, error_node, log, log_bytes);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t log_bytes) {
  return InstantiateOld(exec, graph, error_node, log, log_bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long options) {
  return Instantiate(exec, graph, options);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = Instantiate(exec, graph, params->flags);
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return Call([&] {
    return GraphExecs::Get().Remove(exec) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* options) {
  return Call([&] {
    const auto exec = GraphExecs::Get().Find(handle);
    if (exec == nullptr || options == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *options = exec->flags();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* why) {
  CUgraphNode culprit = nullptr;
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  const CUresult done = Update(exec, graph, &result, &culprit);
  if (error_node != nullptr) *error_node = culprit;
  if (why != nullptr) *why = result;
  return done;
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  CUgraphExecUpdateResultInfo result{CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  const CUresult done = Update(exec, graph, &result.result, &result.errorNode);
  if (info != nullptr) *info = result;
  return done;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  return ContextCall([&](Context& context) {
    const auto exec = GraphExecs::Get().Find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return Issue(context, stream, exec->Snapshot());
  });
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return ContextCall([&](Context& context) {
    if (GraphExecs::Get().Find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return Issue(context, stream, std::make_shared<EmptyOperation>());
  });
}

}  // extern "C"
