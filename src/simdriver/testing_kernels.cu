// Kernels of the driver's tests.
#include <cstdint>
#include <cstdio>

__device__ __noinline__ int Deep(int depth) {
  volatile int kept = depth;
  return depth == 0 ? 0 : Deep(depth - 1) + (kept == depth);
}

extern "C" {

__device__ int counter = 7;
__constant__ int factor = 3;

// to[i] = from[i] * factor, where factor is a constant that the program may set.
__global__ void Scale(int* to, const int* from, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i] * factor;
}

// Parameters of several sizes, to see where each goes.
__global__ void Mixed(char a, double b, short c, int64_t* to) {
  to[0] = a;
  to[1] = static_cast<int64_t>(b);
  to[2] = c;
}

__global__ void Increment(int* value) { *value = *value + 1; }
__global__ void AddToCounter(int by) { counter += by; }

// Waits for the host, or for a kernel of another stream.
__global__ void WaitFor(volatile int* flag) {
  while (*flag == 0) {
  }
}
__global__ void Store(volatile int* to, int value) { *to = value; }

__global__ void StoreGridId(volatile uint64_t* to) {
  uint64_t id;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(id));
  *to = id;
}

__global__ void Forever(volatile int* flag) {
  while (*flag != 12345) {
  }
}

__global__ void Loop(volatile int* to, int turns) {
  for (int i = 0; i < turns; ++i) *to = i;
}

__global__ void Fault() { *reinterpret_cast<int*>(8) = 1; }
__global__ void Misaligned(char* base) { *reinterpret_cast<int*>(base + 1) = 1; }
__global__ void Trap() { __trap(); }

__global__ void __launch_bounds__(64) Bounded(int* to) { to[threadIdx.x] = 1; }

__global__ void DynamicShared(int* to, int n) {
  extern __shared__ int values[];
  values[n - 1] = n;
  to[0] = values[n - 1];
}

__global__ void Descend(int* to, int depth) { *to = Deep(depth); }

// A frame of 6,000 bytes, which the compiler knows.
__global__ void BigFrame(int* to, int n) {
  int values[1500];
  for (int i = 0; i < 1500; ++i) values[i] = to[i % 4] + i;
  *to = values[n];
}

// How many pieces of 64 KiB malloc gives, up to `most`.
__global__ void Hoard(int* to, int most) {
  int count = 0;
  while (count < most && malloc(65536) != nullptr) ++count;
  *to = count;
}

__global__ void Chatter(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %04d\n", i);
}
}
