// SPDX-License-Identifier: Apache-2.0
//
// launch_parts: what of a launch's cost is whose. One process, one thread, one core; a kernel of
// one warp, empty but for its mark, launched in all these ways in turns:
//
//   plain        the image as it is, by the driver's function
//   plain, hook  the same by the collector's: a launch of a kernel that is not traced
//   patched      the patched image, by the driver's function: nothing of ours on the host
//   hooked       the patched image by the collector's function, as under `iket profile`
//
//   launch_parts LIBRARY [BATCHES]      nanoseconds a launch, until it was issued; quartiles
//
// Differences within one process do not depend on where its memory came to lie, as those between
// processes do (attach.py).
#include <cuda.h>
#include <iket/embed.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/embedded_cubin.h"

namespace {

constexpr int kLaunches = 200;  // fit into the driver's queue, so that none waits

#define CHECK(call)                                                             \
  do {                                                                          \
    const CUresult result = call;                                               \
    if (result != CUDA_SUCCESS) {                                               \
      std::fprintf(stderr, "launch_parts: %s: error %d\n", #call, int{result}); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (false)

using Launch = decltype(&cuLaunchKernel);

struct Way {
  const char* name;
  CUfunction function;
  Launch launch;
  std::vector<double> ns{};
};

double Batch(const Way& way) {
  CHECK(cuCtxSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) {
    CHECK(way.launch(way.function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kLaunches;
}

void StayOnThisCore() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

CUfunction Load(const void* image, const char* name, iket_embed_image* bound) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, image));
  if (const char* const why = iket_embed_bind(bound, module)) {
    std::fprintf(stderr, "launch_parts: %s\n", why);
    std::exit(1);
  }
  CHECK(cuModuleGetFunction(&function, module, name));
  return function;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: launch_parts LIBRARY [BATCHES]\n"), 2;
  const int batches = count > 2 ? std::atoi(words[2]) : 300;
  iket_embed_options options{};
  options.size = sizeof options;
  options.library = words[1];
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  if (const char* const why = iket_embed_open(&options)) {
    return std::fprintf(stderr, "launch_parts: %s\n", why), 1;
  }
  iket_embed_image* const image = iket_embed_patch(example_cubin);
  if (image == nullptr) return std::fprintf(stderr, "launch_parts: nothing was patched\n"), 1;
  const void* const patched = iket_embed_image_data(image, nullptr);
  const Launch driver = cuLaunchKernel, hook = IKET_EMBED(cuLaunchKernel);
  CUmodule module = nullptr;
  CUfunction hooked = nullptr, plain = nullptr;
  CHECK(IKET_EMBED(cuModuleLoadData)(&module, example_cubin));
  CHECK(IKET_EMBED(cuModuleGetFunction)(&hooked, module, "Marked"));
  // The original, loaded behind the collector's back, of which it learns that it is not traced.
  CHECK(cuModuleLoadData(&module, example_cubin));
  CHECK(IKET_EMBED(cuModuleGetFunction)(&plain, module, "Marked"));
  std::vector<Way> ways = {
      {"plain", plain, driver},
      {"plain, hook", plain, hook},
      {"patched", Load(patched, "Marked", image), driver},
      {"hooked", hooked, hook},
  };
  iket_embed_release(image);
  StayOnThisCore();
  for (int i = 0; i < batches + 10; ++i) {
    for (Way& way : ways) {
      const double ns = Batch(way);
      if (i >= 10) way.ns.push_back(ns);
    }
  }
  std::printf("%-12s %9s %9s %9s %9s\n", "", "least", "quartile", "median", "to plain");
  double first = 0;
  for (Way& way : ways) {
    std::ranges::sort(way.ns);
    const double quartile = way.ns[way.ns.size() / 4];
    if (first == 0) first = quartile;
    std::printf("%-12s %9.0f %9.0f %9.0f %+9.0f\n", way.name, way.ns.front(), quartile,
                way.ns[way.ns.size() / 2], quartile - first);
  }
  return 0;
}
