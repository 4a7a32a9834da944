// SPDX-License-Identifier: Apache-2.0
//
// Shapes of control flow: lanes part, meet again, leave early, call and return.
#include "corpus.cuh"

CORPUS_KERNEL(flow_if_else, 2)
uint32_t x = a;
if (a & 1) {
  x = x * 3 + b;
  if (b & 2)
    x ^= c;
  else
    x += d;
} else {
  x = x * 5 - c;
  if (c & 4) x |= 1;
}
o[0] = x, o[1] = __brev(x) + d;
CORPUS_END

CORPUS_KERNEL(flow_loop_per_lane, 2)
uint32_t x = a, steps = b & 63;
for (uint32_t k = 0; k < steps; ++k) x = x * 1664525 + 1013904223 + k;
o[0] = x, o[1] = steps;
CORPUS_END

CORPUS_KERNEL(flow_break_continue, 2)
uint32_t x = a, count = 0;
for (uint32_t k = 0; k < 100; ++k) {
  x = x * 22695477 + b;
  if ((x >> 28) == 3) break;
  if (x & 0x100) continue;
  ++count;
  if (count == (c & 31)) break;
}
o[0] = x, o[1] = count;
CORPUS_END

CORPUS_KERNEL(flow_nested_loops, 1)
uint32_t sum = 0;
for (uint32_t j = 0; j < (a & 7); ++j) {
  for (uint32_t k = j; k < (b & 15); ++k) {
    if ((c >> (k & 31)) & 1) continue;
    sum += j * k + d;
    if (sum & 0x800) break;
  }
}
o[0] = sum;
CORPUS_END

CORPUS_KERNEL(flow_collatz, 2)
uint32_t x = (a & 0xffff) + 1, steps = 0;
while (x != 1 && steps < 400) {
  x = x & 1 ? 3 * x + 1 : x / 2;
  ++steps;
}
o[0] = steps, o[1] = x;
CORPUS_END

CORPUS_KERNEL(flow_switch, 1)
uint32_t x = b;
switch (a & 15) {
  case 0:
    x += c;
    break;
  case 1:
    x -= c;
    break;
  case 2:
    x *= 7;
  case 3:
    x ^= d;
    break;
  case 4:
    x = __popc(x);
    break;
  case 5:
    x = ~x;
    break;
  case 6:
    x = x >> 3 | x << 29;
    break;
  case 7:
    x = x / ((c & 15) + 1);
    break;
  case 9:
    x |= 0xf0f0;
    break;
  case 11:
    x &= d;
    break;
  case 12:
    x = min(x, c);
    break;
  case 13:
    x = __byte_perm(x, c, 0x1357);
    break;
  default:
    x = a;
}
o[0] = x;
CORPUS_END

CORPUS_KERNEL(flow_early_return, 2)
o[0] = a, o[1] = 0;
if (a & 8) return;
o[1] = b;
if (__popc(b) > 16) return;
o[0] = a * b, o[1] = c;
CORPUS_END

__device__ __noinline__ uint32_t Mix(uint32_t x, uint32_t y) {
  return (x ^ y) * 0x9e3779b1u + (x >> 7);
}
__device__ __noinline__ uint32_t Twice(uint32_t x, uint32_t y) { return Mix(Mix(x, y), y + 1); }

CORPUS_KERNEL(flow_call, 2)
uint32_t x = Twice(a, b);
if (c & 1) x = Mix(x, c);
o[0] = x, o[1] = Twice(d, x);
CORPUS_END

__device__ __noinline__ uint32_t Fibonacci(uint32_t k) {
  return k < 2 ? k : Fibonacci(k - 1) + Fibonacci(k - 2);
}
CORPUS_KERNEL(flow_recursion, 1)
o[0] = Fibonacci(a % 12);
CORPUS_END

__device__ __noinline__ uint32_t Up(uint32_t x) { return x + 17; }
__device__ __noinline__ uint32_t Down(uint32_t x) { return x * 3 - 5; }
__device__ __noinline__ uint32_t Flip(uint32_t x) { return __brev(x) ^ 0x55; }
__device__ uint32_t (*const kSteps[])(uint32_t) = { Up, Down, Flip };
CORPUS_KERNEL(flow_pointer, 1)
uint32_t x = b;
for (uint32_t k = 0; k < (c & 3) + 1; ++k) x = kSteps[(a >> (2 * k)) % 3](x);
o[0] = x;
CORPUS_END

CORPUS_KERNEL(flow_goto, 1)
uint32_t x = a, left = 60;
first : x = x * 5 + 1;
if (--left == 0) goto done;
if (x & 0x40) goto third;
x ^= b;
if (x & 0x1000) goto first;
third : x += c;
if (--left > 0 && (x & 0x200)) goto first;
done : o[0] = x;
CORPUS_END

CORPUS_KERNEL(flow_select, 2)
const uint32_t x = a < b ? c : d, y = (a & 3) == 3 && b > c ? x + 1 : x - 1;
o[0] = x ^ y, o[1] = (a & 1) != 0 ? (b & 1) != 0 ? 1 : 2 : (c & 1) != 0 ? 3 : 4;
CORPUS_END

CORPUS_KERNEL(flow_ballot_in_branch, 2)
uint32_t seen = 0;
if (a & 1)
  seen = __ballot_sync(__activemask(), b & 1);
else
  seen = __popc(__activemask());
__syncwarp();
o[0] = seen != 0 ? 1 : 0, o[1] = __ballot_sync(0xffffffff, c & 1);
CORPUS_END

CORPUS_KERNEL(flow_loop_then_meet, 2)
uint32_t x = a;
for (uint32_t k = 0; k < (a & 31); ++k) x = x * 69069 + k;
__syncwarp();
o[0] = x, o[1] = __shfl_xor_sync(0xffffffff, x, 1);
CORPUS_END
