// Kernels and marked device functions in sections of their own (-rdc=true), linked with
// reach_unoptimised.cu.
#include <iket/iket.cuh>
using namespace iket::literals;

__device__ __noinline__ float Shared(float x) {
  iket::mark("shared"_ev);
  return x * x + 1;
}
__device__ __noinline__ float Alone(float x) {
  iket::mark("alone"_ev);
  return x * x + 2;
}
__device__ __noinline__ float Pointee(float x) {
  iket::mark("pointee"_ev);
  return x * x + 3;
}
// No marks, but warps may end here.
__device__ __noinline__ float Ends(float x) {
  if (x > 4) asm volatile("exit;");
  return x * x + 4;
}
__device__ float (*pointers[])(float) = {Pointee};

extern "C" __global__ void calls_both(float* data) {
  iket::mark("calls_both"_ev);
  data[threadIdx.x] = Shared(data[threadIdx.x]) + Alone(data[threadIdx.x]);
}
extern "C" __global__ void calls_alone(float* data) { data[threadIdx.x] = Alone(1); }
extern "C" __global__ void calls_pointer(float* data, int i) {
  data[threadIdx.x] = pointers[i](data[threadIdx.x]);
}
extern "C" __global__ void calls_ends(float* data) {
  iket::mark("calls_ends"_ev);
  data[threadIdx.x] = Ends(data[threadIdx.x]);
}
extern "C" __global__ void calls_ends_only(float* data) { data[threadIdx.x] = Ends(1); }
extern "C" __global__ void calls_none(float* data) { data[threadIdx.x] = 1; }
// What it would launch from the device, it does not call.
extern "C" __global__ void names_kernel(void** data) {
  *data = reinterpret_cast<void*>(&calls_both);
}
