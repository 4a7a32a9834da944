// Graphs of which the GPU decides what runs: a loop and a branch in one, and a graph that a kernel
// launches. One mark a warp.
//
//   conditional        prints what the kernels counted
//
// Graph 0 runs Decide (1 CTA), Body (4 CTAs) 2, 0 and 3 times in its three launches, and Sum (2
// CTAs); graph 1 Branch (2 CTAs) in its only launch; graph 2 Later (3 CTAs), launched by Launcher
// (1 CTA) of graph 3 in each of its two launches. All blocks have two warps.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <iket/iket.cuh>

using namespace iket::literals;

namespace {

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = call;                            \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (false)

constexpr unsigned kThreads = 64;

struct Counts {
  unsigned wanted, left, decided, bodies, sums, branches, later;
};

}  // namespace

extern "C" __global__ void Decide(Counts* counts, cudaGraphConditionalHandle loop) {
  iket::mark("decide"_ev);
  if (threadIdx.x != 0) return;
  ++counts->decided;
  counts->left = counts->wanted;
  cudaGraphSetConditional(loop, counts->left > 0 ? 1 : 0);
}

extern "C" __global__ void Body(Counts* counts, cudaGraphConditionalHandle loop) {
  iket::mark("body"_ev);
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  ++counts->bodies;
  --counts->left;
  cudaGraphSetConditional(loop, counts->left > 0 ? 1 : 0);
}

extern "C" __global__ void Sum(Counts* counts) {
  iket::mark("sum"_ev);
  if (threadIdx.x == 0 && blockIdx.x == 0) ++counts->sums;
}

extern "C" __global__ void Branch(Counts* counts) {
  iket::mark("branch"_ev);
  if (threadIdx.x == 0 && blockIdx.x == 0) ++counts->branches;
}

extern "C" __global__ void Later(Counts* counts) {
  iket::mark("later"_ev);
  if (threadIdx.x == 0 && blockIdx.x == 0) ++counts->later;
}

extern "C" __global__ void Launcher(cudaGraphExec_t graph) {
  iket::mark("launcher"_ev);
  if (threadIdx.x == 0) cudaGraphLaunch(graph, cudaStreamGraphTailLaunch);
}

namespace {

cudaStream_t g_stream;

cudaGraphNode_t AddKernel(cudaGraph_t graph, const cudaGraphNode_t* before, void* kernel,
                          unsigned grid, void** arguments) {
  cudaKernelNodeParams params{};
  params.func = kernel;
  params.gridDim = dim3(grid);
  params.blockDim = dim3(kThreads);
  params.kernelParams = arguments;
  cudaGraphNode_t node{};
  CHECK(cudaGraphAddKernelNode(&node, graph, before, before != nullptr ? 1 : 0, &params));
  return node;
}

// A conditional node; its body is yet to be filled.
cudaGraphNode_t AddConditional(cudaGraph_t graph, const cudaGraphNode_t* before,
                               cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                               cudaGraph_t* body) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = 1;
  cudaGraphNode_t node{};
  CHECK(cudaGraphAddNode(&node, graph, before, nullptr, before != nullptr ? 1 : 0, &params));
  *body = params.conditional.phGraph_out[0];
  return node;
}

void Loop(Counts* counts) {
  cudaGraph_t graph{}, body{};
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle loop{};
  CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 0, 0));
  void* both[] = {&counts, &loop};
  const cudaGraphNode_t decide = AddKernel(graph, nullptr, (void*)Decide, 1, both);
  const cudaGraphNode_t node = AddConditional(graph, &decide, loop, cudaGraphCondTypeWhile, &body);
  AddKernel(body, nullptr, (void*)Body, 4, both);
  AddKernel(graph, &node, (void*)Sum, 2, both);
  cudaGraphExec_t executable{};
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (unsigned wanted : {2u, 0u, 3u}) {
    CHECK(
        cudaMemcpyAsync(&counts->wanted, &wanted, sizeof wanted, cudaMemcpyHostToDevice, g_stream));
    CHECK(cudaGraphLaunch(executable, g_stream));
    CHECK(cudaStreamSynchronize(g_stream));
  }
}

void If(Counts* counts) {
  cudaGraph_t graph{}, body{};
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle branch{};
  CHECK(cudaGraphConditionalHandleCreate(&branch, graph, 1, cudaGraphCondAssignDefault));
  AddConditional(graph, nullptr, branch, cudaGraphCondTypeIf, &body);
  void* arguments[] = {&counts};
  AddKernel(body, nullptr, (void*)Branch, 2, arguments);
  cudaGraphExec_t executable{};
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, g_stream));
  CHECK(cudaStreamSynchronize(g_stream));
}

void ByDevice(Counts* counts) {
  cudaGraph_t graph{}, launching{};
  CHECK(cudaGraphCreate(&graph, 0));
  void* arguments[] = {&counts};
  AddKernel(graph, nullptr, (void*)Later, 3, arguments);
  cudaGraphExec_t later{}, executable{};
  CHECK(cudaGraphInstantiate(&later, graph, cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphUpload(later, g_stream));
  CHECK(cudaGraphCreate(&launching, 0));
  void* that[] = {&later};
  AddKernel(launching, nullptr, (void*)Launcher, 1, that);
  CHECK(cudaGraphInstantiate(&executable, launching, cudaGraphInstantiateFlagDeviceLaunch));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaGraphLaunch(executable, g_stream));
    CHECK(cudaStreamSynchronize(g_stream));
  }
}

}  // namespace

int main() {
  Counts* counts = nullptr;
  CHECK(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&counts, sizeof *counts));
  CHECK(cudaMemset(counts, 0, sizeof *counts));
  CHECK(cudaDeviceSynchronize());
  Loop(counts);
  If(counts);
  ByDevice(counts);
  Counts seen{};
  CHECK(cudaMemcpy(&seen, counts, sizeof seen, cudaMemcpyDeviceToHost));
  std::printf("decided %u, bodies %u, sums %u, branches %u, later %u\n", seen.decided, seen.bodies,
              seen.sums, seen.branches, seen.later);
  return 0;
}
