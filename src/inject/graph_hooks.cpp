// Each is what the driver's own is; what it did is told to graphs.h.
#include "inject/graph_hooks.h"

#include "inject/graph_nodes.h"
#include "inject/graphs.h"
#include "inject/launches.h"
#include "inject/real_function.h"

using namespace iket::inject;  // NOLINT: the functions below are C functions of the global
                               // namespace

namespace {

constexpr unsigned long long kByDevice = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

template <typename Params>
LaunchShape ShapeOf(const Params& params) {
  return {.grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
          .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
          .dynamic_shared_bytes = params.sharedMemBytes};
}

void NodeAdded(CUgraphNode node, const CUgraphNodeParams* params) noexcept {
  if (params == nullptr || params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  RememberBodies(node, params->conditional.phGraph_out, params->conditional.size);
}

}  // namespace

extern "C" {

#define IKET_GRAPH_INSTANTIATE(name)                                                  \
  CUresult name(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, \
                size_t log_bytes) {                                                   \
    static const auto real = IKET_REAL(name);                                         \
    if (real == nullptr) return kMissing;                                             \
    const CUresult result = real(exec, graph, error_node, log, log_bytes);            \
    if (result == CUDA_SUCCESS) GraphInstantiated(*exec, graph, /*by_device=*/false); \
    return result;                                                                    \
  }
IKET_GRAPH_INSTANTIATE(cuGraphInstantiate)
IKET_GRAPH_INSTANTIATE(cuGraphInstantiate_v2)
#undef IKET_GRAPH_INSTANTIATE

// Before the call: another thread may launch into the stream as soon as it is captured.
#define IKET_BEGIN_CAPTURE(name, parameters, arguments) \
  CUresult name parameters {                            \
    static const auto real = IKET_REAL(name);           \
    if (real == nullptr) return kMissing;               \
    CaptureBegins();                                    \
    return real arguments;                              \
  }
IKET_BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream stream), (stream))
IKET_BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
IKET_BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
                   (stream, mode))
IKET_BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode),
                   (stream, mode))
#define IKET_BEGIN_CAPTURE_TO_GRAPH(name)                                                    \
  IKET_BEGIN_CAPTURE(name,                                                                   \
                     (CUstream stream, CUgraph graph, const CUgraphNode* nodes,              \
                      const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode), \
                     (stream, graph, nodes, edges, count, mode))
IKET_BEGIN_CAPTURE_TO_GRAPH(cuStreamBeginCaptureToGraph)
IKET_BEGIN_CAPTURE_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)
#undef IKET_BEGIN_CAPTURE_TO_GRAPH
#undef IKET_BEGIN_CAPTURE

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long options) {
  const auto real = IKET_REAL(cuGraphInstantiateWithFlags);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, graph, options);
  if (result == CUDA_SUCCESS) GraphInstantiated(*exec, graph, (options & kByDevice) != 0);
  return result;
}

#define IKET_GRAPH_INSTANTIATE(name)                                                               \
  CUresult name(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {         \
    static const auto real = IKET_REAL(name);                                                      \
    if (real == nullptr) return kMissing;                                                          \
    const CUresult result = real(exec, graph, params);                                             \
    if (result == CUDA_SUCCESS) GraphInstantiated(*exec, graph, (params->flags & kByDevice) != 0); \
    return result;                                                                                 \
  }
IKET_GRAPH_INSTANTIATE(cuGraphInstantiateWithParams)
IKET_GRAPH_INSTANTIATE(cuGraphInstantiateWithParams_ptsz)
#undef IKET_GRAPH_INSTANTIATE

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUgraphNodeParams* params) {
  static const auto kReal = IKET_REAL(cuGraphAddNode);
  if (kReal == nullptr) return kMissing;
  const CUresult result = kReal(node, graph, before, count, params);
  if (result == CUDA_SUCCESS) NodeAdded(*node, params);
  return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  static const auto kReal = IKET_REAL(cuGraphAddNode_v2);
  if (kReal == nullptr) return kMissing;
  const CUresult result = kReal(node, graph, before, edges, count, params);
  if (result == CUDA_SUCCESS) NodeAdded(*node, params);
  return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* why) {
  const auto real = IKET_REAL(cuGraphExecUpdate);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, graph, error_node, why);
  if (result == CUDA_SUCCESS) GraphUpdated(exec, graph);
  return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const auto real = IKET_REAL(cuGraphExecUpdate_v2);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, graph, info);
  if (result == CUDA_SUCCESS) GraphUpdated(exec, graph);
  return result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  const auto real = IKET_REAL(cuGraphExecKernelNodeSetParams);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, node, params);
  if (result == CUDA_SUCCESS) {
    GraphKernelChanged(exec, node, params->func, nullptr, ShapeOf(*params));
  }
  return result;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  const auto real = IKET_REAL(cuGraphExecKernelNodeSetParams_v2);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, node, params);
  if (result == CUDA_SUCCESS) {
    GraphKernelChanged(exec, node, params->func, params->kern, ShapeOf(*params));
  }
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const auto real = IKET_REAL(cuGraphExecChildGraphNodeSetParams);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, node, child);
  if (result == CUDA_SUCCESS) GraphChildChanged(exec, node, child);
  return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  const auto real = IKET_REAL(cuGraphExecNodeSetParams);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, node, params);
  if (result != CUDA_SUCCESS) return result;
  if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    GraphKernelChanged(exec, node, params->kernel.func, params->kernel.kern,
                       ShapeOf(params->kernel));
  } else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    GraphChildChanged(exec, node, params->graph.graph);
  }
  return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const auto real = IKET_REAL(cuGraphNodeSetEnabled);
  if (real == nullptr) return kMissing;
  const CUresult result = real(exec, node, enabled);
  if (result == CUDA_SUCCESS) GraphNodeEnabled(exec, node, enabled != 0);
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const auto real = IKET_REAL(cuGraphExecDestroy);
  if (real == nullptr) return kMissing;
  // Before: afterwards another thread may be given the same handle.
  GraphDestroyed(exec);
  return real(exec);
}

#define IKET_GRAPH_LAUNCH(name)                                                   \
  CUresult name(CUgraphExec exec, CUstream stream) {                              \
    static const auto real = IKET_REAL(name);                                     \
    if (real == nullptr) return kMissing;                                         \
    const Launching launching = BeforeGraphLaunch(exec, StreamOf(#name, stream)); \
    if (launching.result != CUDA_SUCCESS) return launching.result;                \
    const CUresult result = real(exec, stream);                                   \
    AfterLaunch(launching.entry, result);                                         \
    return result;                                                                \
  }
IKET_GRAPH_LAUNCH(cuGraphLaunch)
IKET_GRAPH_LAUNCH(cuGraphLaunch_ptsz)
#undef IKET_GRAPH_LAUNCH

}  // extern "C"
