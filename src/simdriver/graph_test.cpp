#include <array>

#include "simdriver/testing.h"

namespace iket::simdriver::testing {
namespace {

class Graph : public WithModule {
 protected:
  void SetUp() override {
    WithModule::SetUp();
    ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuMemAlloc)(&value, 4));
    ASSERT_CU(CU(cuMemsetD32)(value, 0, 1));
    ASSERT_CU(CU(cuCtxSynchronize)());
  }
  CUDA_KERNEL_NODE_PARAMS KernelParams(const char* name, void** params) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = Function(name);
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    return node;
  }
  CUresult Increment(CUstream in) { return Launch("Increment", 1, {&value}, in); }
  int Value() {
    int read = -1;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(&read, value, 4));
    return read;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(CUDA_SUCCESS, CU(cuGraphInstantiate)(&exec, graph, 0));
    return exec;
  }

  CUstream stream = nullptr;
  CUstream other = nullptr;
  CUdeviceptr value = 0;
};

TEST_F(Graph, CapturedWorkRunsWhenItIsLaunched) {
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status{};
  ASSERT_CU(CU(cuStreamIsCapturing)(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(CU(cuMemsetD32Async)(value, 10, 1, stream));
  ASSERT_CU(Increment(stream));
  ASSERT_CU(Increment(stream));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamEndCapture)(stream, &graph));
  EXPECT_EQ(Value(), 0);
  size_t nodes = 0;
  size_t edges = 0;
  ASSERT_CU(CU(cuGraphGetNodes)(graph, nullptr, &nodes));
  ASSERT_CU(CU(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(nodes, 3u);
  EXPECT_EQ(edges, 2u);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  for (int i = 0; i < 3; ++i) ASSERT_CU(CU(cuGraphLaunch)(exec, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Value(), 12);
  ASSERT_CU(CU(cuGraphExecDestroy)(exec));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGraphLaunch)(exec, stream));
}

TEST_F(Graph, ANodeHasOneGridIdInAllReplays) {
  CUdeviceptr ids = 0;
  ASSERT_CU(CU(cuMemAlloc)(&ids, 24));
  CUdeviceptr at[] = {ids, ids + 8, ids + 16};
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(Launch("StoreGridId", 1, {&at[0]}, stream));
  ASSERT_CU(Launch("StoreGridId", 1, {&at[1]}, stream));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamEndCapture)(stream, &graph));
  const CUgraphExec exec = Instantiate(graph);
  const CUgraphExec twin = Instantiate(graph);
  const auto ids_now = [&] {
    std::array<uint64_t, 3> read{};
    EXPECT_CU(CUDA_SUCCESS, CU(cuStreamSynchronize)(stream));
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(read.data(), ids, sizeof read));
    return read;
  };
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream));
  const auto first = ids_now();
  EXPECT_NE(first[0], first[1]);
  ASSERT_CU(Launch("StoreGridId", 1, {&at[2]}, stream));
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream));
  const auto second = ids_now();
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(second[1], first[1]);
  EXPECT_NE(second[2], first[0]);
  EXPECT_NE(second[2], first[1]);
  ASSERT_CU(CU(cuGraphLaunch)(twin, stream));
  EXPECT_NE(ids_now()[0], first[0]);
}

TEST_F(Graph, EventsCarryACaptureIntoOtherStreams) {
  CUevent fork = nullptr;
  CUevent join = nullptr;
  ASSERT_CU(CU(cuEventCreate)(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(CU(cuEventCreate)(&join, CU_EVENT_DISABLE_TIMING));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(CU(cuMemsetD32Async)(value, 5, 1, stream));
  ASSERT_CU(CU(cuEventRecord)(fork, stream));
  EXPECT_CU(CUDA_ERROR_CAPTURED_EVENT, CU(cuEventQuery)(fork));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  ASSERT_CU(Increment(other));
  ASSERT_CU(CU(cuEventRecord)(join, other));
  ASSERT_CU(CU(cuStreamWaitEvent)(stream, join, 0));
  ASSERT_CU(Increment(stream));
  ASSERT_CU(CU(cuStreamEndCapture)(stream, &graph));
  ASSERT_CU(CU(cuGraphLaunch)(Instantiate(graph), stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Value(), 7);
  // Without the way back it is an error, and both streams are free again.
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(CU(cuEventRecord)(fork, stream));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  ASSERT_CU(Increment(other));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CU(cuStreamEndCapture)(stream, &graph));
  EXPECT_EQ(graph, nullptr);
  ASSERT_CU(Increment(other));
  ASSERT_CU(CU(cuStreamSynchronize)(other));
  EXPECT_EQ(Value(), 8);
}

TEST_F(Graph, WhatACaptureForbidsSpoilsIt) {
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuMemAlloc)(&pointer, 4));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Increment(stream));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(stream, &graph));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE, CU(cuStreamEndCapture)(stream, &graph));

  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemAlloc)(&pointer, 4));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuStreamSynchronize)(stream));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(stream, &graph));

  // A thread in relaxed mode may do what it likes: so a collector works during a capture.
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemAlloc)(&pointer, 4));
  EXPECT_CU(CUDA_SUCCESS, CU(cuStreamSynchronize)(other));
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  ASSERT_CU(Increment(stream));
  EXPECT_CU(CUDA_SUCCESS, CU(cuStreamEndCapture)(stream, &graph));
}

TEST_F(Graph, LegacyStreamMayNotBeUsedBesideABlockingCapture) {
  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            CU(cuStreamBeginCapture)(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Increment(nullptr));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(blocking, &graph));
}

TEST_F(Graph, NodesOfEveryKind) {
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = value;
  set.value = 40;
  set.elementSize = 4;
  set.width = 1;
  set.height = 1;
  CUgraphNode memset_node = nullptr;
  CUgraphNode kernel_node = nullptr;
  CUgraphNode copy_node = nullptr;
  CUgraphNode host_node = nullptr;
  CUgraphNode empty_node = nullptr;
  CUgraphNode child_node = nullptr;
  ASSERT_CU(CU(cuGraphAddMemsetNode)(&memset_node, graph, nullptr, 0, &set, context));
  void* params[] = {&value};
  const CUDA_KERNEL_NODE_PARAMS kernel = KernelParams("Increment", params);
  ASSERT_CU(CU(cuGraphAddKernelNode)(&kernel_node, graph, &memset_node, 1, &kernel));
  int copied = 0;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = value;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = &copied;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  ASSERT_CU(CU(cuGraphAddMemcpyNode)(&copy_node, graph, &kernel_node, 1, &copy, context));
  struct Seen {
    int* copied;
    int seen = 0;
  } seen{&copied};
  const CUDA_HOST_NODE_PARAMS host{[](void* data) {
                                     auto* to = static_cast<Seen*>(data);
                                     to->seen = *to->copied;
                                   },
                                   &seen};
  ASSERT_CU(CU(cuGraphAddHostNode)(&host_node, graph, &copy_node, 1, &host));
  ASSERT_CU(CU(cuGraphAddEmptyNode)(&empty_node, graph, &host_node, 1));
  // A graph of its own as one node.
  CUgraph child = nullptr;
  CUgraphNode inner = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&child, 0));
  ASSERT_CU(CU(cuGraphAddKernelNode)(&inner, child, nullptr, 0, &kernel));
  ASSERT_CU(CU(cuGraphAddChildGraphNode)(&child_node, graph, &empty_node, 1, child));
  ASSERT_CU(CU(cuGraphDestroy)(child));

  CUgraphNodeType type{};
  ASSERT_CU(CU(cuGraphNodeGetType)(kernel_node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  ASSERT_CU(CU(cuGraphNodeGetType)(child_node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_GRAPH);
  CUDA_KERNEL_NODE_PARAMS read{};
  ASSERT_CU(CU(cuGraphKernelNodeGetParams)(kernel_node, &read));
  EXPECT_EQ(read.func, kernel.func);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(read.kernelParams[0]), value);

  ASSERT_CU(CU(cuGraphLaunch)(Instantiate(graph), stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(copied, 41);
  EXPECT_EQ(seen.seen, 41);
  EXPECT_EQ(Value(), 42);
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGraphNodeGetType)(kernel_node, &type));
}

TEST_F(Graph, ExecutableGraphsAreChangedAndUpdated) {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  int stored = 1;
  void* params[] = {&value, &stored};
  CUDA_KERNEL_NODE_PARAMS store = KernelParams("Store", params);
  void* increment_params[] = {&value};
  const CUDA_KERNEL_NODE_PARAMS increment = KernelParams("Increment", increment_params);
  ASSERT_CU(CU(cuGraphAddKernelNode)(&first, graph, nullptr, 0, &store));
  ASSERT_CU(CU(cuGraphAddKernelNode)(&second, graph, &first, 1, &increment));
  const CUgraphExec exec = Instantiate(graph);
  const auto run = [&] {
    EXPECT_CU(CUDA_SUCCESS, CU(cuGraphLaunch)(exec, stream));
    EXPECT_CU(CUDA_SUCCESS, CU(cuStreamSynchronize)(stream));
    return Value();
  };
  stored = 99;  // arguments were copied when the node was added
  EXPECT_EQ(run(), 2);
  stored = 50;
  ASSERT_CU(CU(cuGraphExecKernelNodeSetParams)(exec, first, &store));
  EXPECT_EQ(run(), 51);
  ASSERT_CU(CU(cuGraphNodeSetEnabled)(exec, second, 0));
  EXPECT_EQ(run(), 50);
  ASSERT_CU(CU(cuGraphNodeSetEnabled)(exec, second, 1));
  // The graph itself still says 1.
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CU(CU(cuGraphExecUpdate)(exec, graph, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(run(), 2);
  ASSERT_CU(CU(cuGraphRemoveDependencies)(graph, &first, &second, nullptr, 1));
  EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CU(cuGraphExecUpdate)(exec, graph, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(info.errorNode, second);
  // A cycle cannot be instantiated.
  ASSERT_CU(CU(cuGraphAddDependencies)(graph, &first, &second, nullptr, 1));
  ASSERT_CU(CU(cuGraphAddDependencies)(graph, &second, &first, nullptr, 1));
  CUgraphExec none = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGraphInstantiate)(&none, graph, 0));
}

TEST_F(Graph, ClonesAreIndependent) {
  CUgraph graph = nullptr;
  CUgraph clone = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode twin = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  void* params[] = {&value};
  const CUDA_KERNEL_NODE_PARAMS increment = KernelParams("Increment", params);
  ASSERT_CU(CU(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &increment));
  ASSERT_CU(CU(cuGraphClone)(&clone, graph));
  ASSERT_CU(CU(cuGraphNodeFindInClone)(&twin, node, clone));
  EXPECT_NE(twin, node);
  ASSERT_CU(CU(cuGraphDestroyNode)(node));
  size_t nodes = 0;
  ASSERT_CU(CU(cuGraphGetNodes)(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 0u);
  ASSERT_CU(CU(cuGraphGetNodes)(clone, nullptr, &nodes));
  EXPECT_EQ(nodes, 1u);
  ASSERT_CU(CU(cuGraphLaunch)(Instantiate(clone), stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Value(), 1);
}

TEST_F(Graph, AFaultStopsTheRestOfIt) {
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(Launch("Fault", 1, {}, stream));
  int calls = 0;
  ASSERT_CU(CU(cuLaunchHostFunc)(stream, [](void* data) { ++*static_cast<int*>(data); }, &calls));
  ASSERT_CU(CU(cuStreamEndCapture)(stream, &graph));
  ::testing::internal::CaptureStderr();
  ASSERT_CU(CU(cuGraphLaunch)(Instantiate(graph), stream));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuStreamSynchronize)(stream));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace iket::simdriver::testing
