// SPDX-License-Identifier: Apache-2.0
//
// A person's small program of the driver API: loads a file of code and runs a kernel of it.
//
//   app IMAGE KERNEL [fork-first | fork-late | again]
//
// Says "running" when all threads of the kernel Endless run, "done" at the end, or which call
// failed with which error, and then ends with 1. With `fork-first` a forked child does the same
// beside it; with `fork-late` the child is forked when the device is in use, which CUDA does not
// permit. With `again` all is done three times, in contexts that end with everything that is in
// them.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "../good.h"

namespace {

constexpr unsigned kCtas = 2, kThreads = 64;

// Waits until every thread of the kernel has counted itself, or the kernel is over.
void WaitUntilRunning(const volatile int* count) {
  while (*count != kCtas * kThreads && cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) {
    usleep(1000);
  }
  std::printf("running\n");
  std::fflush(stdout);
}

// Lets the kernel go on, a batch each third of a second.
void Pace(volatile int* batch) {
  for (int i = 1; i <= 5; ++i) {
    usleep(300'000);
    *batch = i;
  }
}

int Run(const char* image, const char* kernel, bool fork_late) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  void* memory = nullptr;
  CUdeviceptr on_device = 0;
  void* arguments[] = {&on_device};
  if (!GOOD(cuInit(0))) return 1;
  if (fork_late) {
    const pid_t child = fork();
    if (child == 0) return Run(image, kernel, false);
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("the child ended with %d\n", WEXITSTATUS(status));
  }
  const bool launched =
      GOOD(cuDeviceGet(&device, 0)) && GOOD(cuDevicePrimaryCtxRetain(&context, device)) &&
      GOOD(cuCtxSetCurrent(context)) &&
      GOOD(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP)) &&
      GOOD(cuMemHostGetDevicePointer(&on_device, memory, 0)) &&
      GOOD(cuModuleLoad(&module, image)) && GOOD(cuModuleGetFunction(&function, module, kernel)) &&
      GOOD(cuLaunchKernel(function, kCtas, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr));
  if (!launched) return 1;
  if (std::strcmp(kernel, "Endless") == 0) WaitUntilRunning(static_cast<const int*>(memory));
  if (std::strcmp(kernel, "Paced") == 0) Pace(static_cast<int*>(memory));
  if (!GOOD(cuCtxSynchronize())) return 1;
  std::printf("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const how = argc > 3 ? argv[3] : "";
  if (std::strcmp(how, "again") == 0) {
    for (int i = 0; i < 3; ++i) {
      if (Run(argv[1], argv[2], false) != 0 || !GOOD(cuDevicePrimaryCtxReset(0))) return 1;
    }
    return 0;
  }
  if (std::strcmp(how, "fork-first") != 0) {
    return Run(argv[1], argv[2], std::strcmp(how, "fork-late") == 0);
  }
  const pid_t child = fork();
  const int code = Run(argv[1], argv[2], false);
  if (child == 0) return code;
  int status = 0;
  waitpid(child, &status, 0);
  return code | WEXITSTATUS(status);
}
