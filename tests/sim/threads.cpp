// SPDX-License-Identifier: Apache-2.0
//
// A program of many threads: each loads an image of its own into the one context, as a module or as
// a library, runs its kernel Work on a stream of its own, and lets go of it, again and again.
//
//   threads IMAGE [leave]
//
// Says "8 threads: ok", or what was wrong, and then ends with 1. With `leave` the program ends
// while its threads are at work.
#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../good.h"

namespace {

constexpr int kThreads = 8, kRounds = 6, kLaunches = 5;
constexpr int kCtas = 2, kThreadsOfCta = 64;

struct Loaded {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction function = nullptr;

  bool Load(const std::string& image, bool as_library) {
    if (!as_library) {
      return GOOD(cuModuleLoadData(&module, image.data())) &&
             GOOD(cuModuleGetFunction(&function, module, "Work"));
    }
    CUkernel kernel = nullptr;
    const bool loaded =
        GOOD(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)) &&
        GOOD(cuLibraryGetKernel(&kernel, library, "Work"));
    function = reinterpret_cast<CUfunction>(kernel);
    return loaded;
  }
  bool Unload() {
    return module != nullptr ? GOOD(cuModuleUnload(module)) : GOOD(cuLibraryUnload(library));
  }
};

bool Round(const std::string& image, bool as_library) {
  Loaded code;
  CUstream stream = nullptr;
  void* memory = nullptr;
  CUdeviceptr on_device = 0;
  void* arguments[] = {&on_device};
  bool good = GOOD(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP)) &&
              GOOD(cuMemHostGetDevicePointer(&on_device, memory, 0)) &&
              GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) && code.Load(image, as_library);
  for (int i = 0; i < kLaunches && good; ++i) {
    good = GOOD(cuLaunchKernel(code.function, kCtas, 1, 1, kThreadsOfCta, 1, 1, 0, stream,
                               arguments, nullptr));
  }
  return good && GOOD(cuStreamSynchronize(stream)) && code.Unload() &&
         GOOD(cuStreamDestroy(stream)) && GOOD(cuMemFreeHost(memory));
}

// Ends the program when every thread has done some rounds, and none has ended.
int Leave(const std::string& image, CUcontext context) {
  static std::atomic<int> rounds = 0;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&image, context, i] {
      bool good = cuCtxSetCurrent(context) == CUDA_SUCCESS;
      for (int round = 0; good; ++round, ++rounds) good = Round(image, (i + round) % 2 == 0);
    }).detach();
  }
  while (rounds < kThreads * kRounds) std::this_thread::yield();
  std::printf("%d threads: ok\n", kThreads);
  std::fflush(stdout);
  std::exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  // Never destroyed: threads may outlive main.
  static const auto& image = *new std::string((std::istreambuf_iterator<char>(file)), {});
  CUcontext context = nullptr;
  if (!GOOD(cuInit(0)) || !GOOD(cuDevicePrimaryCtxRetain(&context, 0))) return 1;
  if (argc > 2) return Leave(image, context);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      bool ok = GOOD(cuCtxSetCurrent(context));
      for (int round = 0; round < kRounds && ok; ++round) ok = Round(image, (i + round) % 2 == 0);
      good += ok ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (good != kThreads) return 1;
  std::printf("%d threads: ok\n", kThreads);
  return 0;
}
