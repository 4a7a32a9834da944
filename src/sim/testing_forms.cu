// Instructions that kernels of others have and ours have not, for forms_test.cpp and
// decode_test.cpp.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

extern "C" __global__ void Bytes(const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                 uint32_t* out) {
  const unsigned i = threadIdx.x;
  uint32_t r[7];
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r[0]) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("vabsdiff4.u32.s32.s32.add %0, %1, %2, %3;" : "=r"(r[1]) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  r[2] = __vabsdiffu4(a[i], b[i]);
  r[3] = __vminu2(a[i], b[i]);
  r[4] = __vmaxu2(a[i], b[i]);
  r[5] = __vmins2(a[i], b[i]);
  r[6] = __vmaxs2(a[i], b[i]);
  for (int k = 0; k < 7; ++k) out[k * 32 + i] = r[k];
}

// A[16][4] B[4][8] + C; words as the lanes hold them.
extern "C" __global__ void Tf32(const uint32_t* a, const uint32_t* b, const float* c, float* d) {
  const unsigned i = threadIdx.x;
  float r[4];
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%7, %8, %9, %10};"
      : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
      : "r"(a[i]), "r"(a[i + 32]), "r"(b[i]), "f"(c[i]), "f"(c[i + 32]), "f"(c[i + 64]),
        "f"(c[i + 96]));
  for (int k = 0; k < 4; ++k) d[k * 32 + i] = r[k];
}

// Three copies of 32 x 16 bytes, from before and behind the address in the register.
extern "C" __global__ void CopyAt(const uint4* from, uint4* to) {
  __shared__ uint4 tile[96];
  const unsigned i = threadIdx.x;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[i]));
  const uint4* const source = from + 64 + i;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(source));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 512), "l"(source + 32));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 1024), "l"(source - 64));
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int k = 0; k < 3; ++k) to[32 * k + i] = tile[32 * k + i];
}

// An mbarrier of 32 arrivals. Copies announce themselves, so they are no arrivals of those 32; with
// .noinc each is one.
extern "C" __global__ void Announced(const uint4* from, uint32_t* out, int noinc) {
  __shared__ uint64_t barrier;
  __shared__ uint4 tile[32];
  const unsigned i = threadIdx.x;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  const auto place = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[i]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from + i));
  if (noinc) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  } else {
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
  }
  __syncthreads();
  const auto over = [at]() {
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(at)
        : "memory");
    return done;
  };
  const uint32_t before = over();
  __syncthreads();
  if (!noinc) asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at));
  __syncthreads();
  out[i] = before | over() << 1;
}

// Where does the address lie; and an addition of doubles there, whatever the answer is.
extern "C" __global__ void Generic(double* global, uint32_t* out) {
  __shared__ double shared;
  double local[2] = {0, 0};
  if (threadIdx.x == 0) shared = 1;
  __syncthreads();
  double* const where[3] = {global, &shared, &local[out[threadIdx.x] & 1]};
  double* const address = where[threadIdx.x % 3];
  uint32_t said;
  asm volatile(
      "{ .reg .pred g, s, l; .reg .u32 a, b, c; isspacep.global g, %1; isspacep.shared s, %1; "
      "isspacep.local l, %1; selp.b32 a, 1, 0, g; selp.b32 b, 2, 0, s; selp.b32 c, 4, 0, l; "
      "add.u32 a, a, b; add.u32 %0, a, c; }"
      : "=r"(said)
      : "l"(address));
  if (threadIdx.x % 3 != 2) atomicAdd(address, 0.5);
  __syncthreads();
  out[threadIdx.x] = said;
  if (threadIdx.x == 0) global[1] = shared;
}

// Each CTA adds up what all of them wrote before the first barrier of the grid, four times over.
extern "C" __global__ void GridSync(uint32_t* words, uint32_t* sums) {
  const auto grid = cooperative_groups::this_grid();
  for (uint32_t turn = 0; turn < 4; ++turn) {
    if (threadIdx.x == 0) words[blockIdx.x] = blockIdx.x + turn;
    grid.sync();
    uint32_t sum = 0;
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += 32) sum += words[i];
    sum = __reduce_add_sync(~0u, sum);
    grid.sync();
    if (threadIdx.x == 0) sums[blockIdx.x] = turn == 0 ? sum : sums[blockIdx.x] + sum;
  }
}

// More than the 4 KiB of parameters that there were up to CUDA 12.0.
struct Many {
  uint32_t words[8000];
};
extern "C" __global__ void LargeParameter(const __grid_constant__ Many many, uint32_t* out) {
  for (unsigned i = threadIdx.x; i < 8000; i += 32) out[i] = many.words[i] + 1;
}

// ---- what the software device refuses, by its name ----------------------------------------------
extern "C" __global__ void Textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float* out) {
  const auto x = static_cast<float>(threadIdx.x), y = static_cast<float>(threadIdx.y);
  const int ix = static_cast<int>(threadIdx.x), iy = static_cast<int>(threadIdx.y);
  float sum = tex1Dfetch<float>(t, ix) + tex1D<float>(t, x) + tex2D<float>(t, x, y) +
              tex3D<float>(t, x, y, 1) + tex1DLayered<float>(t, x, 1) +
              tex2DLayered<float>(t, x, y, 2) + texCubemap<float>(t, x, y, 1) +
              tex2DLod<float>(t, x, y, 3) +
              tex2DGrad<float>(t, x, y, make_float2(1, 2), make_float2(3, 4)) +
              tex2Dgather<float4>(t, x, y, 1).w;
  int width = 0;
  asm("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t));
  surf2Dwrite(sum, s, 4 * ix, iy);
  surf3Dwrite(sum, s, 4 * ix, iy, 1);
  surf1Dwrite(make_float4(sum, 1, 2, 3), s, 16 * ix);
  sum += surf2Dread<float>(s, 4 * ix, iy) + surf1Dread<float2>(s, 8 * ix).y;
  out[ix] = sum + static_cast<float>(width);
}
extern "C" __global__ void BulkCopy(const uint4* from, uint4* to) {
  __shared__ alignas(128) uint4 tile[32];
  __shared__ uint64_t barrier;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const auto mbarrier = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::
          "r"(at),
      "l"(from), "r"(mbarrier)
      : "memory");
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
  to[threadIdx.x] = tile[threadIdx.x];
}
