// library_app IMAGE: loads a library before there is a context, and runs its kernel Saxpy in one
// that comes later. Says "library_app: n=4096, ok", or which call failed, and then ends with 1.
#include <cuda.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

bool Good(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return true;
  std::printf("library_app: %s failed with %d\n", call, static_cast<int>(result));
  return false;
}
#define GOOD(call) Good(call, #call)

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)), {});
  constexpr int kCount = 4096;
  std::vector<float> x(kCount), y(kCount, 1), result(kCount);
  for (int i = 0; i < kCount; ++i) x[i] = static_cast<float>(i);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr on_device_x = 0, on_device_y = 0;
  int n = kCount;
  float a = 2;
  void* arguments[] = {&n, &a, &on_device_x, &on_device_y};
  constexpr size_t kBytes = kCount * sizeof(float);
  const bool ran =
      GOOD(cuInit(0)) &&
      GOOD(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)) &&
      GOOD(cuLibraryGetKernel(&kernel, library, "Saxpy")) &&
      GOOD(cuDevicePrimaryCtxRetain(&context, 0)) && GOOD(cuCtxSetCurrent(context)) &&
      GOOD(cuMemAlloc(&on_device_x, kBytes)) && GOOD(cuMemAlloc(&on_device_y, kBytes)) &&
      GOOD(cuMemcpyHtoD(on_device_x, x.data(), kBytes)) &&
      GOOD(cuMemcpyHtoD(on_device_y, y.data(), kBytes)) &&
      GOOD(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 4, 1, 1, 128, 1, 1, 0, nullptr,
                          arguments, nullptr)) &&
      GOOD(cuCtxSynchronize()) && GOOD(cuMemcpyDtoH(result.data(), on_device_y, kBytes));
  if (!ran) return 1;
  for (int i = 0; i < kCount; ++i) {
    if (result[i] == 2 * x[i] + 1) continue;
    std::printf("library_app: y[%d] is %f\n", i, static_cast<double>(result[i]));
    return 1;
  }
  std::printf("library_app: n=%d, ok\n", kCount);
  return 0;
}
