// map_early PLAIN.cubin MARKED.cubin: launches a kernel without marks, then one with them if there
// is a second file, and prints by how many bytes the memory that is free has shrunk at each step.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace {

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* why = "?";
  cuGetErrorString(result, &why);
  std::fprintf(stderr, "map_early: %s: %s\n", what, why);
  std::exit(1);
}

size_t Free() {
  size_t free = 0, total = 0;
  Check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

void Launch(const char* file, CUdeviceptr out) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  Check(cuModuleLoad(&module, file), file);
  Check(cuModuleGetFunction(&kernel, module, "Work"), "cuModuleGetFunction");
  void* arguments[] = {&out};
  Check(cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr), "launch");
  Check(cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr out = 0;
  Check(cuInit(0), "cuInit");
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuMemAlloc(&out, 1 << 20), "cuMemAlloc");
  for (int i = 1; i < argc; ++i) {
    const size_t before = Free();
    Launch(argv[i], out);
    std::printf("%zu\n", before - Free());
  }
  return 0;
}
