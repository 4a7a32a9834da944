// SPDX-License-Identifier: Apache-2.0
//
// A person's small program of the driver API: loads a file of code and runs a kernel of it.
//
//   app IMAGE KERNEL [fork-first | fork-late | again | close | reuse | no-streams | kill-parent |
//                     exec]
//
// Says "running" when all threads of the kernel Endless run, "done" at the end, or which call
// failed with which error, and then ends with 1. With `fork-first` a forked child does the same
// beside it; with `fork-late` the child is forked when the device is in use, which CUDA does not
// permit. With `again` all is done three times, in contexts that end with everything that is in
// them. With `close` it closes, between loading and launching, all descriptors that it does not
// know; with `reuse` it also opens files of its own until their numbers are taken. With
// `no-streams` it has no standard streams. With `kill-parent` it kills its parent before it ends.
// With `exec` it executes itself when it is done, and is another program of the same pid.
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
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

void CloseDescriptors(bool reuse) {
  close_range(STDERR_FILENO + 1, ~0u, 0);
  for (int i = 0; reuse && i < 64; ++i) open("/dev/null", O_RDWR);
}

void KillParent() {
  const pid_t parent = getppid();
  kill(parent, SIGKILL);
  while (getppid() == parent) usleep(1000);
}

int Run(const char* image, const char* kernel, const char* how = "") {
  const auto is = [how](const char* what) { return std::strcmp(how, what) == 0; };
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  void* memory = nullptr;
  CUdeviceptr on_device = 0;
  void* arguments[] = {&on_device};
  if (!GOOD(cuInit(0))) return 1;
  if (is("fork-late")) {
    const pid_t child = fork();
    if (child == 0) return Run(image, kernel);
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("the child ended with %d\n", WEXITSTATUS(status));
  }
  const bool loaded =
      GOOD(cuDeviceGet(&device, 0)) && GOOD(cuDevicePrimaryCtxRetain(&context, device)) &&
      GOOD(cuCtxSetCurrent(context)) &&
      GOOD(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP)) &&
      GOOD(cuMemHostGetDevicePointer(&on_device, memory, 0)) &&
      GOOD(cuModuleLoad(&module, image)) && GOOD(cuModuleGetFunction(&function, module, kernel));
  if (!loaded) return 1;
  if (is("close") || is("reuse")) CloseDescriptors(is("reuse"));
  if (!GOOD(
          cuLaunchKernel(function, kCtas, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr))) {
    return 1;
  }
  if (std::strcmp(kernel, "Endless") == 0) WaitUntilRunning(static_cast<const int*>(memory));
  if (std::strcmp(kernel, "Paced") == 0) Pace(static_cast<int*>(memory));
  if (!GOOD(cuCtxSynchronize())) return 1;
  if (is("kill-parent")) KillParent();
  std::printf("done\n");
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const how = argc > 3 ? argv[3] : "";
  if (std::strcmp(how, "again") == 0) {
    for (int i = 0; i < 3; ++i) {
      if (Run(argv[1], argv[2]) != 0 || !GOOD(cuDevicePrimaryCtxReset(0))) return 1;
    }
    return 0;
  }
  if (std::strcmp(how, "no-streams") == 0) close_range(STDIN_FILENO, STDERR_FILENO, 0);
  if (std::strcmp(how, "fork-first") != 0) {
    const int code = Run(argv[1], argv[2], how);
    if (code == 0 && std::strcmp(how, "exec") == 0) {
      execl(argv[0], argv[0], argv[1], argv[2], nullptr);
    }
    return code;
  }
  const pid_t child = fork();
  const int code = Run(argv[1], argv[2]);
  if (child == 0) return code;
  int status = 0;
  waitpid(child, &status, 0);
  return code | WEXITSTATUS(status);
}
