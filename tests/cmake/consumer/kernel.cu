#include <iket/iket.cuh>

using namespace iket::literals;

extern "C" __global__ void scale(float* x, float a) {
  iket::range r{"scale"_ev, static_cast<int>(blockIdx.x)};
  x[blockIdx.x * blockDim.x + threadIdx.x] *= a;
}
