// SPDX-License-Identifier: Apache-2.0
//
// A small program of the driver API that launches one kernel in all the ways that graphs have: a
// captured graph, its clone, one with a child, one that is changed after it was instantiated, and
// plain launches between them. graphs_test.py knows what it does.
//
//   graphs IMAGE [spread | many]
//
// With `spread` the clone is launched into a second stream, and less often. With `many` the first
// graph is launched so often that small rings overflow.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <iterator>

#include "../good.h"

namespace {

constexpr unsigned kThreads = 64, kMaxCtas = 8;

struct Program {
  CUfunction work = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CUdeviceptr memory = 0;
  void* arguments[1] = {&memory};

  bool Start(const char* image);
  bool Launch(unsigned ctas);
  CUDA_KERNEL_NODE_PARAMS Node(unsigned ctas);
  bool Captured(CUgraph* graph);
  bool OfOneNode(unsigned ctas, CUgraph* graph, CUgraphNode* node);
  bool Replay(CUgraphExec exec, int times, CUstream into);
  bool Run(bool spread, int times);
  bool Right();
};

bool Program::Start(const char* image) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  return GOOD(cuInit(0)) && GOOD(cuDeviceGet(&device, 0)) &&
         GOOD(cuDevicePrimaryCtxRetain(&context, device)) && GOOD(cuCtxSetCurrent(context)) &&
         GOOD(cuModuleLoad(&module, image)) && GOOD(cuModuleGetFunction(&work, module, "Work")) &&
         GOOD(cuMemAlloc(&memory, kMaxCtas * kThreads * sizeof(int))) &&
         GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) &&
         GOOD(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
}

bool Program::Launch(unsigned ctas) {
  return GOOD(cuLaunchKernel(work, ctas, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
}

CUDA_KERNEL_NODE_PARAMS Program::Node(unsigned ctas) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = work;
  params.gridDimX = ctas;
  params.blockDimX = kThreads;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}

// Two and three CTAs, one after the other.
bool Program::Captured(CUgraph* graph) {
  return GOOD(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)) && Launch(2) &&
         Launch(3) && GOOD(cuStreamEndCapture(stream, graph));
}

bool Program::OfOneNode(unsigned ctas, CUgraph* graph, CUgraphNode* node) {
  const CUDA_KERNEL_NODE_PARAMS params = Node(ctas);
  return GOOD(cuGraphCreate(graph, 0)) &&
         GOOD(cuGraphAddKernelNode(node, *graph, nullptr, 0, &params));
}

bool Program::Replay(CUgraphExec exec, int times, CUstream into) {
  for (int i = 0; i < times; ++i) {
    if (!GOOD(cuGraphLaunch(exec, into))) return false;
  }
  return true;
}

bool Program::Run(bool spread, int times) {
  CUgraph captured = nullptr, clone = nullptr, parent = nullptr, changing = nullptr, next = nullptr;
  CUgraphNode node = nullptr, child = nullptr, changed = nullptr, unused = nullptr;
  CUgraphExec execs[4] = {};
  CUgraphExecUpdateResultInfo info{};
  const CUDA_KERNEL_NODE_PARAMS five = Node(5);
  return Launch(6) && Captured(&captured) && GOOD(cuGraphClone(&clone, captured)) &&
         OfOneNode(4, &parent, &node) &&
         GOOD(cuGraphAddChildGraphNode(&child, parent, &node, 1, captured)) &&
         OfOneNode(1, &changing, &changed) && OfOneNode(7, &next, &unused) &&
         GOOD(cuGraphInstantiate(&execs[0], captured, 0)) &&
         GOOD(cuGraphInstantiate(&execs[1], clone, 0)) &&
         GOOD(cuGraphInstantiate(&execs[2], parent, 0)) &&
         GOOD(cuGraphInstantiate(&execs[3], changing, 0)) && Replay(execs[0], times, stream) &&
         Launch(6) && Replay(execs[1], spread ? 4 : 5, spread ? other : stream) &&
         Replay(execs[2], 5, stream) && Replay(execs[3], 3, stream) &&
         GOOD(cuGraphExecKernelNodeSetParams(execs[3], changed, &five)) &&
         Replay(execs[3], 3, stream) && GOOD(cuGraphExecUpdate(execs[3], next, &info)) &&
         Replay(execs[3], 3, stream) && GOOD(cuCtxSynchronize());
}

// Each thread of the largest grid has left its number.
bool Program::Right() {
  int numbers[7 * kThreads] = {};
  if (!GOOD(cuMemcpyDtoH(numbers, memory, sizeof numbers))) return false;
  for (int i = 0; i < static_cast<int>(std::size(numbers)); ++i) {
    if (numbers[i] != i) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* const how = argc > 2 ? argv[2] : "";
  const int times = std::strcmp(how, "many") == 0 ? 400 : 20;
  Program program;
  if (!program.Start(argv[1])) return 1;
  if (!program.Run(std::strcmp(how, "spread") == 0, times)) return 1;
  if (!program.Right()) return 1;
  std::printf("graphs, ok\n");
  return 0;
}
