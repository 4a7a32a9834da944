// foreign FILE.cubin KERNEL CTAS THREADS CLUSTER BUFFERS N: launches a kernel of another front end,
// with buffers of 4096 floats that hold 0, 1, 2, ... and the number N behind as many of them as it
// takes.
//
// Prints the sum of what is in the buffers then. On the software device and on a GPU.
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
  std::fprintf(stderr, "foreign: %s: %s\n", what, why);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: foreign FILE.cubin KERNEL CTAS THREADS CLUSTER BUFFERS N\n");
    return 2;
  }
  const auto number = [argv](int i) { return static_cast<unsigned>(std::atoi(argv[i])); };
  constexpr size_t kMostBuffers = 3;
  const size_t buffers = number(6);
  if (buffers > kMostBuffers) return 2;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  Check(cuInit(0), "cuInit");
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuModuleLoad(&module, argv[1]), argv[1]);
  Check(cuModuleGetFunction(&kernel, module, argv[2]), "cuModuleGetFunction");

  std::vector<float> data(4096);
  std::iota(data.begin(), data.end(), 0.0F);
  const size_t bytes = data.size() * sizeof(float);
  CUdeviceptr on_device[kMostBuffers] = {};
  void* arguments[kMostBuffers + 1] = {};
  for (size_t i = 0; i < buffers; ++i) {
    Check(cuMemAlloc(&on_device[i], bytes), "cuMemAlloc");
    Check(cuMemcpyHtoD(on_device[i], data.data(), bytes), "cuMemcpyHtoD");
    arguments[i] = &on_device[i];
  }
  int n = std::atoi(argv[7]);
  arguments[buffers] = &n;

  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = number(5);
  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = number(3);
  config.blockDimX = number(4);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &cluster;
  config.numAttrs = number(5) > 1 ? 1 : 0;
  Check(cuLaunchKernelEx(&config, kernel, arguments, nullptr), "cuLaunchKernelEx");
  double sum = 0;
  for (size_t i = 0; i < buffers; ++i) {
    Check(cuMemcpyDtoH(data.data(), on_device[i], bytes), "cuMemcpyDtoH");
    sum = std::accumulate(data.begin(), data.end(), sum);
  }
  std::printf("%.17g\n", sum);
  return 0;
}
