// SPDX-License-Identifier: Apache-2.0
//
// mma.sync, ldmatrix, stmatrix. Blocks have 128 threads; each warp multiplies on its own. Inputs
// are made small from the random words, so that nothing overflows.
#include "corpus.cuh"

// Two halves, each in [-2, 2).
__device__ uint32_t SmallHalves(uint32_t x) {
  return U(__floats2half2_rn(static_cast<float>(static_cast<int8_t>(x)) / 64,
                             static_cast<float>(static_cast<int8_t>(x >> 8)) / 64));
}
__device__ uint32_t SmallBfloats(uint32_t x) {
  return U(__floats2bfloat162_rn(static_cast<float>(static_cast<int8_t>(x)) / 64,
                                 static_cast<float>(static_cast<int8_t>(x >> 8)) / 64));
}
__device__ float Small(uint32_t x) { return static_cast<float>(static_cast<int16_t>(x)) / 4096; }

CORPUS_KERNEL(mma_f16_f32, 4)
float x = Small(a), y = Small(b), z = Small(c), w = Small(d);
asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
    "{%0,%1,%2,%3};"
    : "+f"(x), "+f"(y), "+f"(z), "+f"(w)
    : "r"(SmallHalves(a)), "r"(SmallHalves(b)), "r"(SmallHalves(c)), "r"(SmallHalves(d)),
      "r"(SmallHalves(a ^ c)), "r"(SmallHalves(b ^ d)));
o[0] = U(x), o[1] = U(y), o[2] = U(z), o[3] = U(w);
CORPUS_END

CORPUS_KERNEL(mma_f16_f16, 2)
uint32_t x = SmallHalves(c), y = SmallHalves(d);
asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
    : "+r"(x), "+r"(y)
    : "r"(SmallHalves(a)), "r"(SmallHalves(b)), "r"(SmallHalves(a ^ b)));
o[0] = x, o[1] = y;
CORPUS_END

CORPUS_KERNEL(mma_bf16, 4)
float x = 0, y = 0, z = Small(a), w = 1;
asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
    "{%0,%1,%2,%3};"
    : "+f"(x), "+f"(y), "+f"(z), "+f"(w)
    : "r"(SmallBfloats(a)), "r"(SmallBfloats(b)), "r"(SmallBfloats(c)), "r"(SmallBfloats(d)),
      "r"(SmallBfloats(a ^ c)), "r"(SmallBfloats(b ^ d)));
o[0] = U(x), o[1] = U(y), o[2] = U(z), o[3] = U(w);
CORPUS_END

CORPUS_KERNEL(mma_tf32, 4)
float x = 0, y = 0, z = 0, w = 0;
asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
    "{%0,%1,%2,%3};"
    : "+f"(x), "+f"(y), "+f"(z), "+f"(w)
    : "r"(U(Small(a))), "r"(U(Small(b))), "r"(U(Small(c))), "r"(U(Small(d))),
      "r"(U(Small(a >> 16))), "r"(U(Small(b >> 16))));
o[0] = U(x), o[1] = U(y), o[2] = U(z), o[3] = U(w);
CORPUS_END

CORPUS_KERNEL(mma_s8, 4)
int x = static_cast<int>(a), y = 0, z = 5, w = static_cast<int>(d);
asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
    "{%0,%1,%2,%3};"
    : "+r"(x), "+r"(y), "+r"(z), "+r"(w)
    : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a ^ d), "r"(b ^ c));
o[0] = static_cast<uint32_t>(x), o[1] = static_cast<uint32_t>(y), o[2] = static_cast<uint32_t>(z),
                                 o[3] = static_cast<uint32_t>(w);
CORPUS_END

CORPUS_KERNEL(mma_u8, 4)
int x = 0, y = 0, z = 0, w = 0;
asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
    : "+r"(x), "+r"(y), "+r"(z), "+r"(w)
    : "r"(a), "r"(b), "r"(c));
o[0] = static_cast<uint32_t>(x), o[1] = static_cast<uint32_t>(y), o[2] = static_cast<uint32_t>(z),
                                 o[3] = static_cast<uint32_t>(w);
CORPUS_END

CORPUS_KERNEL(mma_f64, 4)
double x = Small(c), y = Small(d);
asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
    : "+d"(x), "+d"(y)
    : "d"(static_cast<double>(Small(a))), "d"(static_cast<double>(Small(b))));
Put(o, x), Put(o + 2, y);
CORPUS_END

CORPUS_KERNEL(mat_load, 8)
__shared__ __align__(16) uint32_t tile[512];
for (uint32_t k = 0; k < 4; ++k) tile[4 * threadIdx.x + k] = in[4 * i + k];
__syncthreads();
const auto row =
    static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + ((threadIdx.x * 5 & 127) * 16);
uint32_t r0, r1, r2, r3;
asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
             : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
             : "r"(row));
o[0] = r0, o[1] = r1, o[2] = r2, o[3] = r3;
asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
             : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
             : "r"(row));
o[4] = r0, o[5] = r1, o[6] = r2, o[7] = r3;
CORPUS_END

CORPUS_KERNEL(mat_load_less, 3)
__shared__ __align__(16) uint32_t tile[512];
for (uint32_t k = 0; k < 4; ++k) tile[4 * threadIdx.x + k] = in[4 * i + k];
__syncthreads();
const auto row = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
uint32_t r0, r1, r2;
asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r0) : "r"(row));
asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
             : "=r"(r1), "=r"(r2)
             : "r"(row));
o[0] = r0, o[1] = r1, o[2] = r2;
CORPUS_END

CORPUS_KERNEL(mat_store, 4)
__shared__ __align__(16) uint32_t tile[512];
const auto row = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row), "r"(a),
             "r"(b), "r"(c), "r"(d)
             : "memory");
__syncthreads();
for (uint32_t k = 0; k < 4; ++k) o[k] = tile[4 * threadIdx.x + k];
CORPUS_END

CORPUS_KERNEL(mat_store_trans, 4)
__shared__ __align__(16) uint32_t tile[512];
for (uint32_t k = 0; k < 4; ++k) tile[4 * threadIdx.x + k] = 0;
__syncthreads();
const auto row = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" ::"r"(row), "r"(a),
             "r"(b)
             : "memory");
__syncthreads();
for (uint32_t k = 0; k < 4; ++k) o[k] = tile[4 * threadIdx.x + k];
CORPUS_END
