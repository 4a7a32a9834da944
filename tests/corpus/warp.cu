// SPDX-License-Identifier: Apache-2.0
//
// What lanes of a warp say to each other.
#include "corpus.cuh"

constexpr uint32_t kAll = 0xffffffff;

CORPUS_KERNEL(warp_shuffle, 4)
o[0] = __shfl_sync(kAll, a, static_cast<int>(b & 31)), o[1] = __shfl_up_sync(kAll, a, c & 31);
o[2] = __shfl_down_sync(kAll, a, d & 31), o[3] = __shfl_xor_sync(kAll, a, 5);
CORPUS_END

CORPUS_KERNEL(warp_shuffle_width, 4)
o[0] = __shfl_sync(kAll, a, static_cast<int>(b & 31), 8), o[1] = __shfl_up_sync(kAll, a, 3, 16);
o[2] = __shfl_down_sync(kAll, a, 2, 4), o[3] = __shfl_xor_sync(kAll, a, 9, 16);
CORPUS_END

CORPUS_KERNEL(warp_shuffle_64, 2)
const unsigned long long x = __shfl_down_sync(kAll, static_cast<unsigned long long>(Join(a, b)), 7);
o[0] = Lo(x), o[1] = Hi(x);
CORPUS_END

CORPUS_KERNEL(warp_vote, 4)
o[0] = __ballot_sync(kAll, a & 1), o[1] = __any_sync(kAll, (b & 31) == 0) ? 1 : 0;
o[2] = __all_sync(kAll, (c & 31) != 0) ? 1 : 0;
uint32_t uniform;
asm("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.uni.pred q, p, 0xffffffff;\n\t"
    "selp.u32 %0, 1, 0, q;\n\t}"
    : "=r"(uniform)
    : "r"(d & 64));
o[3] = uniform;
CORPUS_END

CORPUS_KERNEL(warp_match, 3)
int same = 0;
o[0] = __match_any_sync(kAll, a & 7), o[1] = __match_all_sync(kAll, b & 0, &same);
o[2] = __match_any_sync(kAll, Join(c & 1, d & 1)) + static_cast<uint32_t>(same);
CORPUS_END

CORPUS_KERNEL(warp_reduce, 7)
o[0] = __reduce_add_sync(kAll, a), o[1] = __reduce_min_sync(kAll, b),
                                   o[2] = __reduce_max_sync(kAll, b);
o[3] = __reduce_and_sync(kAll, c | 0xff), o[4] = __reduce_or_sync(kAll, c & 0xff00ff);
o[5] = __reduce_xor_sync(kAll, d);
o[6] = static_cast<uint32_t>(__reduce_min_sync(kAll, static_cast<int>(a)));
CORPUS_END

CORPUS_KERNEL(warp_part_masks, 2)
const uint32_t half = (threadIdx.x & 16) != 0 ? 0xffff0000 : 0x0000ffff;
o[0] = __reduce_add_sync(half, a & 0xffff),
    o[1] = __shfl_sync(half, b, static_cast<int>(threadIdx.x & 16));
CORPUS_END

CORPUS_KERNEL(warp_lane_masks, 6)
uint32_t lane, lt, le, gt, ge, eq;
asm("mov.u32 %0, %%laneid;" : "=r"(lane));
asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
o[0] = lane, o[1] = lt, o[2] = le, o[3] = gt, o[4] = ge, o[5] = eq;
CORPUS_END

CORPUS_KERNEL(warp_scan, 1)
uint32_t x = a & 0xffff;
for (uint32_t step = 1; step < 32; step *= 2) {
  const uint32_t other = __shfl_up_sync(kAll, x, step);
  if ((threadIdx.x & 31) >= step) x += other;
}
o[0] = x;
CORPUS_END

CORPUS_KERNEL(warp_elect, 1)
uint32_t leader;
asm("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
    : "=r"(leader));
o[0] = leader;
CORPUS_END

CORPUS_KERNEL(warp_active_lanes, 1)
o[0] = 0;
if (a & 3) o[0] = __popc(__activemask()) <= 32 ? 2 : 3;
CORPUS_END
