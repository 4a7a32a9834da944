"""A Triton kernel, compiled when it is called."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_one(pointer, count, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < count
    tl.store(pointer + offsets, tl.load(pointer + offsets, mask=inside) + 1, mask=inside)


x = torch.arange(5000, device="cuda", dtype=torch.int32)
add_one[(triton.cdiv(5000, 256),)](x, 5000, block=256)
print(int(x.sum()))
