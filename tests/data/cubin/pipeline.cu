// One of everything that a cubin can hold besides code: constants, initialised and zeroed globals,
// static and dynamic shared memory, a device function that is not inlined, printf, two kernels.
#include <cstdio>

__constant__ float scale[4];
__device__ int counter = 7;
__device__ int zeroed[64];

__device__ __noinline__ float Slow(float v, int n) {
  for (int i = 0; i < n; ++i) v = v * 1.5f + scale[i & 3];
  return v;
}

extern __shared__ float dynamic_smem[];

template <int kSize>
__device__ void Work(float* out, int n) {
  __shared__ float tile[kSize];
  tile[threadIdx.x % kSize] = out[threadIdx.x];
  __syncthreads();
  if (n < 0) return;
  dynamic_smem[threadIdx.x] = Slow(tile[(threadIdx.x + 1) % kSize], n);
  out[threadIdx.x] = dynamic_smem[threadIdx.x ^ 1];
  if (n == 3) printf("n %d %d\n", n, atomicAdd(&counter, 1));
  zeroed[threadIdx.x % 64] = n;
}

extern "C" __global__ void work32(float* out, int n) { Work<32>(out, n); }
extern "C" __global__ void work64(float* out, int n) { Work<64>(out, n); }
