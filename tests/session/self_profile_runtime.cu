// SPDX-License-Identifier: Apache-2.0
//
// A program of the CUDA runtime, linked statically with it, that profiles a part of itself with
// iket/iket_profiling_session.h: it needs a GPU.
//
//   self_profile_runtime TRACE
//
// Launches a kernel twice before the session, which is made when CUDA is long in use; five times in
// it, two of them by a graph; and once behind it. TRACE has five launches of eight warps then, each
// warp with a range "work" and in it a mark "step" with 0, 1 and 2.
#include <cuda_runtime.h>
#include <iket/iket_profiling_session.h>

#include <cstdio>
#include <iket/iket.cuh>

using iket::literals::operator""_ev;

__global__ void Work(float* out) {
  iket::range work{"work"_ev};
  float value = out[threadIdx.x];
  for (int i = 0; i < 3; ++i) {
    iket::mark("step"_ev, i);
    value = value * 1.5f + 1.0f;
  }
  out[threadIdx.x] = value;
}

namespace {

bool Good(cudaError_t result, const char* call) {
  if (result != cudaSuccess) std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
  return result == cudaSuccess;
}
#define GOOD(call) Good(call, #call)

bool Said(iket::IketProfilingSessionResult code, const char* call) {
  if (code != IKET_PROFILING_SESSION_SUCCESS) std::fprintf(stderr, "%s: %u\n", call, code);
  return code == IKET_PROFILING_SESSION_SUCCESS;
}
#define SAID(call) Said(iket::IketProfilingSession##call, #call)

bool Launch(float* memory, cudaStream_t stream) {
  Work<<<4, 64, 0, stream>>>(memory);
  return GOOD(cudaGetLastError());
}

bool Run(const char* trace) {
  float* memory = nullptr;
  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  iket::IketProfilingSessionHandle session = nullptr;
  return GOOD(cudaMalloc(&memory, 4096)) && GOOD(cudaStreamCreate(&stream)) &&
         Launch(memory, nullptr) &&
         GOOD(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)) &&
         Launch(memory, stream) && GOOD(cudaStreamEndCapture(stream, &graph)) &&
         GOOD(cudaGraphInstantiate(&executable, graph, 0)) &&
         GOOD(cudaGraphLaunch(executable, stream)) && GOOD(cudaDeviceSynchronize()) &&
         SAID(Create(&session)) && SAID(Start(session)) && Launch(memory, nullptr) &&
         Launch(memory, nullptr) && Launch(memory, stream) &&
         GOOD(cudaGraphLaunch(executable, stream)) && GOOD(cudaGraphLaunch(executable, stream)) &&
         SAID(Stop(session)) && Launch(memory, nullptr) && SAID(SaveTrace(session, trace)) &&
         SAID(Destroy(session)) && GOOD(cudaDeviceSynchronize());
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: self_profile_runtime TRACE\n"), 2;
  return Run(words[1]) && std::puts("done, ok") >= 0 ? 0 : 1;
}
