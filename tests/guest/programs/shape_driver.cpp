// SPDX-License-Identifier: Apache-2.0
//
// shape_driver CUBIN [--cooperative] GRID BLOCK N: runs the kernel `Run` of a file over the driver
// API.
#include <cuda.h>

#include <cstring>

#include "../../good.h"
#include "shape_main.h"

namespace {}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool cooperative = argc > 2 && std::strcmp(argv[2], "--cooperative") == 0;
  shape::Arguments a = shape::Parse(argc, argv, cooperative ? 3 : 2);
  std::vector<unsigned> result(a.threads());
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction run = nullptr;
  CUdeviceptr out = 0;
  if (!GOOD(cuInit(0)) || !GOOD(cuDevicePrimaryCtxRetain(&context, 0)) ||
      !GOOD(cuCtxSetCurrent(context)) || !GOOD(cuModuleLoad(&module, argv[1])) ||
      !GOOD(cuModuleGetFunction(&run, module, "Run")) || !GOOD(cuMemAlloc(&out, a.bytes())) ||
      !GOOD(cuMemcpyHtoD(out, result.data(), a.bytes()))) {
    return 1;
  }
  void* parameters[] = {&out, &a.n};
  const bool launched =
      cooperative
          ? GOOD(
                cuLaunchCooperativeKernel(run, a.grid, 1, 1, a.block, 1, 1, 0, nullptr, parameters))
          : GOOD(cuLaunchKernel(run, a.grid, 1, 1, a.block, 1, 1, 0, nullptr, parameters, nullptr));
  if (!launched || !GOOD(cuCtxSynchronize()) ||
      !GOOD(cuMemcpyDtoH(result.data(), out, a.bytes()))) {
    return 1;
  }
  shape::Print(result);
  return 0;
}
