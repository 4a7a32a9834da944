// Stream capture.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/graph_nodes.h"

namespace iket::simdriver {
namespace {

CUresult Begin(CUstream handle, CUstreamCaptureMode mode) {
  return ContextCall([&](Context& context) {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto stream = context.FindStream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return BeginCapture(stream, mode, nullptr, {});
  });
}

// What cuStreamGetCaptureInfo returns as an array; it lives until the thread asks again.
std::vector<CUgraphNode>& ReturnedNodes() {
  thread_local std::vector<CUgraphNode> nodes;
  return nodes;
}

CUresult Info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
              const CUgraphNode** dependencies, size_t* count) {
  return ContextCall([&](Context& context) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto stream = context.FindStream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CaptureState state = StateOfCapture(stream);
    *status = state.status;
    if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id != nullptr) *id = state.id;
    if (graph != nullptr) *graph = state.graph;
    std::vector<CUgraphNode>& nodes = ReturnedNodes();
    nodes.clear();
    for (GraphNode* node : state.dependencies) nodes.push_back(Nodes::HandleOf(node));
    if (dependencies != nullptr) *dependencies = nodes.data();
    if (count != nullptr) *count = nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult Update(CUstream handle, const CUgraphNode* dependencies, size_t count, unsigned flags) {
  return ContextCall([&](Context& context) {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    const auto stream = context.FindStream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<GraphNode*> nodes;
    const auto graph = Graphs::Get().Find(StateOfCapture(stream).graph);
    if (graph == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (!FindNodes(*graph, dependencies, count, &nodes)) return CUDA_ERROR_INVALID_VALUE;
    return UpdateCaptureDependencies(stream, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES, nodes);
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuStreamBeginCapture(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph into, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*, size_t count,
                                     CUstreamCaptureMode mode) {
  return ContextCall([&](Context& context) {
    const auto stream = context.FindStream(handle);
    const auto graph = Graphs::Get().Find(into);
    if (stream == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<GraphNode*> nodes;
    if (!FindNodes(*graph, dependencies, count, &nodes)) return CUDA_ERROR_INVALID_VALUE;
    return BeginCapture(stream, mode, graph, std::move(nodes));
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* captured) {
  return ContextCall([&](Context& context) {
    if (captured == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *captured = nullptr;
    const auto stream = context.FindStream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<Graph> graph;
    const CUresult result = EndCapture(stream, &graph);
    if (result == CUDA_SUCCESS) *captured = Graphs::HandleOf(graph.get());
    return result;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Info(stream, status, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Info(stream, status, id, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return Info(stream, status, id, graph, dependencies, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return Info(stream, status, id, graph, dependencies, count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                           unsigned options) {
  return Update(stream, dependencies, count, options);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned options) {
  return Update(stream, dependencies, count, options);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return Call([&] {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = ExchangeCaptureMode(*mode);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
