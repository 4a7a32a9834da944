// gpu.h over the CUDA runtime. Kernels are loaded when they are first launched.
#pragma once

#define GUEST_CHECK(call)                                                    \
  do {                                                                       \
    const cudaError_t error = call;                                          \
    if (error != cudaSuccess) guest::Failed(#call, cudaGetErrorName(error)); \
  } while (false)

namespace guest {

using Stream = cudaStream_t;
using GraphExec = cudaGraphExec_t;

inline unsigned* Allocate() {
  unsigned* memory = nullptr;
  GUEST_CHECK(cudaMalloc(&memory, kThreads * sizeof(unsigned)));
  GUEST_CHECK(cudaMemset(memory, 0, kThreads * sizeof(unsigned)));
  GUEST_CHECK(cudaDeviceSynchronize());  // other streams do not wait for it
  return memory;
}
inline void Launch(unsigned* out, Stream stream) {
  Step<<<kGrid, kBlock, 0, stream>>>(out, kRounds);
  GUEST_CHECK(cudaGetLastError());
}
inline std::vector<unsigned> Read(const unsigned* memory) {
  std::vector<unsigned> words(kThreads);
  GUEST_CHECK(cudaDeviceSynchronize());
  GUEST_CHECK(
      cudaMemcpy(words.data(), memory, kThreads * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return words;
}
inline Stream NewStream() {
  Stream stream = nullptr;
  GUEST_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
inline void BeginCapture(Stream stream) {
  GUEST_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}
inline GraphExec EndCapture(Stream stream) {
  cudaGraph_t graph = nullptr;
  GraphExec executable = nullptr;
  GUEST_CHECK(cudaStreamEndCapture(stream, &graph));
  GUEST_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  GUEST_CHECK(cudaGraphDestroy(graph));
  return executable;
}
inline void LaunchGraph(GraphExec graph, Stream stream) {
  GUEST_CHECK(cudaGraphLaunch(graph, stream));
}
inline void Reset() { GUEST_CHECK(cudaDeviceReset()); }

}  // namespace guest
