// SPDX-License-Identifier: Apache-2.0
//
// Launches a kernel out of a cubin over the driver API: two CTAs of two warps, NAME(float* data,
// int n).
//
//   hello FILE.cubin [NAME [N]]        default: hello 4
//
// Prints the sum of data, 128 floats that were 0 before.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* why = "?";
  cuGetErrorString(result, &why);
  std::fprintf(stderr, "hello: %s: %s\n", what, why);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: hello FILE.cubin [NAME [N]]\n");
    return 2;
  }
  constexpr unsigned kCtas = 2, kThreads = 64;
  std::vector<float> data(kCtas * kThreads);
  const size_t bytes = data.size() * sizeof(float);
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr on_device = 0;
  Check(cuInit(0), "cuInit");
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuModuleLoad(&module, argv[1]), argv[1]);
  Check(cuModuleGetFunction(&kernel, module, argc > 2 ? argv[2] : "hello"), "cuModuleGetFunction");
  Check(cuMemAlloc(&on_device, bytes), "cuMemAlloc");
  Check(cuMemcpyHtoD(on_device, data.data(), bytes), "cuMemcpyHtoD");
  int n = argc > 3 ? std::atoi(argv[3]) : 4;
  void* arguments[] = {&on_device, &n};
  Check(cuLaunchKernel(kernel, kCtas, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
        "cuLaunchKernel");
  Check(cuMemcpyDtoH(data.data(), on_device, bytes), "cuMemcpyDtoH");
  std::printf("%g\n", std::accumulate(data.begin(), data.end(), 0.0));
  return 0;
}
