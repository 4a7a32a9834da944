// What simulator_bench runs on the software device: a kernel for each kind of work that a loop of a
// real kernel is made of. Unrolled, so that what is measured is the work and not its loop.
#include <cstdint>

// Chains of fused multiply-adds, as in a direct convolution.
extern "C" __global__ void Fma(float* out, int rounds) {
  float x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int step = 0; step < 8; ++step) {
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = x[i] * 0.99f + x[(i + 1) % 8];
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A hash: additions, exclusive ors, rotations, products.
extern "C" __global__ void Hash(uint32_t* out, int rounds) {
  uint32_t h = threadIdx.x * 2654435761u, k = blockIdx.x;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      k *= 0xcc9e2d51u;
      k = k << 15 | k >> 17;
      h ^= k * 0x1b873593u;
      h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
      k += h >> 3;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = h;
}

// Loads and stores of neighbouring words.
extern "C" __global__ void Stream(float4* out, const float4* in, int count) {
  const int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    float4 v = in[i];
    v.x *= 2;
    v.y += v.x;
    v.z -= v.y;
    v.w *= v.z;
    out[i] = v;
  }
}

// A sum over a CTA through shared memory and shuffles.
extern "C" __global__ void Reduce(float* out, const float* in, int rounds) {
  __shared__ float partial[32];
  float total = 0;
  for (int r = 0; r < rounds; ++r) {
    float sum = in[threadIdx.x] + total;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    total = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) total += partial[w];
    total *= 0.001f;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

// Lanes that go different ways for different lengths of time.
extern "C" __global__ void Diverge(uint32_t* out, int rounds) {
  uint32_t steps = 0;
  for (int r = 1; r <= rounds; ++r) {
    for (uint32_t v = threadIdx.x * 7 + r; v > 1; ++steps) v = v & 1 ? 3 * v + 1 : v / 2;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = steps;
}

// What threads do with a table in global memory: 32 addresses that have nothing in common.
extern "C" __global__ void Gather(uint32_t* out, const uint32_t* table, int rounds) {
  uint32_t at = threadIdx.x * 977 & 4095;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int step = 0; step < 8; ++step) at = (at * 5 + table[at]) & 4095;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
