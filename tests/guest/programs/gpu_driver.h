// gpu.h over the driver API, with the cubin of process.cu in the program.
#pragma once

#include <cuda.h>

#include <mutex>

#include "common/embedded_cubin.h"

#define GUEST_CHECK(call)                    \
  do {                                       \
    const CUresult result = call;            \
    if (result != CUDA_SUCCESS) {            \
      const char* name = "an unknown error"; \
      cuGetErrorName(result, &name);         \
      guest::Failed(#call, name);            \
    }                                        \
  } while (false)

namespace guest {

using Stream = CUstream;
using GraphExec = CUgraphExec;

// The function in the current context.
inline CUfunction LoadStep(CUmodule* loaded = nullptr) {
  CUmodule module = nullptr;
  CUfunction step = nullptr;
  GUEST_CHECK(cuModuleLoadData(&module, example_cubin));
  GUEST_CHECK(cuModuleGetFunction(&step, module, "Step"));
  if (loaded != nullptr) *loaded = module;
  return step;
}
inline CUfunction& Step() {
  static CUfunction step = nullptr;  // in the primary context
  return step;
}
inline std::mutex& Loading() {
  static std::mutex mutex;
  return mutex;
}
// What the runtime does by itself: the primary context, current in this thread.
inline void UsePrimary() {
  static CUcontext context = nullptr;
  const std::lock_guard<std::mutex> lock(Loading());
  if (Step() == nullptr) {
    GUEST_CHECK(cuInit(0));
    GUEST_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    GUEST_CHECK(cuCtxSetCurrent(context));
    Step() = LoadStep();
  }
  GUEST_CHECK(cuCtxSetCurrent(context));
}
inline unsigned* Allocate() {
  UsePrimary();
  CUdeviceptr memory = 0;
  GUEST_CHECK(cuMemAlloc(&memory, kThreads * sizeof(unsigned)));
  GUEST_CHECK(cuMemsetD32(memory, 0, kThreads));
  GUEST_CHECK(cuCtxSynchronize());  // other streams do not wait for it
  return reinterpret_cast<unsigned*>(memory);
}
inline void LaunchAs(CUfunction step, unsigned* out, Stream stream) {
  unsigned rounds = kRounds;
  void* parameters[] = {&out, &rounds};
  GUEST_CHECK(cuLaunchKernel(step, kGrid, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr));
}
inline void Launch(unsigned* out, Stream stream) {
  UsePrimary();
  LaunchAs(Step(), out, stream);
}
inline std::vector<unsigned> Read(const unsigned* memory) {
  std::vector<unsigned> words(kThreads);
  GUEST_CHECK(cuCtxSynchronize());
  GUEST_CHECK(cuMemcpyDtoH(words.data(), reinterpret_cast<CUdeviceptr>(memory),
                           kThreads * sizeof(unsigned)));
  return words;
}
inline Stream NewStream() {
  UsePrimary();
  Stream stream = nullptr;
  GUEST_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}
inline void BeginCapture(Stream stream) {
  GUEST_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}
inline GraphExec EndCapture(Stream stream) {
  CUgraph graph = nullptr;
  GraphExec executable = nullptr;
  GUEST_CHECK(cuStreamEndCapture(stream, &graph));
  GUEST_CHECK(cuGraphInstantiate(&executable, graph, 0));
  GUEST_CHECK(cuGraphDestroy(graph));
  return executable;
}
inline void LaunchGraph(GraphExec graph, Stream stream) {
  GUEST_CHECK(cuGraphLaunch(graph, stream));
}
inline void Reset() {
  GUEST_CHECK(cuDevicePrimaryCtxReset(0));
  Step() = nullptr;
}

}  // namespace guest
