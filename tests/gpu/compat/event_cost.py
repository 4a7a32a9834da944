"""What one of IKET's events costs a CuTe DSL kernel: cycles of an SM in a loop of 64 dependent FMAs.

    event_cost.py [--iterations N] [--warps 1,8,32]

Kernels without a mark, with a mark, a mark with 32 bits of payload, and a pushed range in each iteration; a CTA of so
many warps on each SM. Prints "event KIND WARPS CYCLES" for each: cycles an iteration by clock64, of the median thread of
the fastest of five launches. Run it as it is (marks stripped), with CUTE_DSL_COMPILER_OPT=iket (compiled in, not
collected) and under a collector.
"""
import argparse
import sys

import torch

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

iket = cute.experimental.iket
FMAS = 64


# `kind` becomes part of the kernel's name, by which collectors tell kernels apart.
@cute.kernel
def loop(out: cute.Tensor, n: cutlass.Int32, a: cutlass.Float32, b: cutlass.Float32, kind: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    width, _, _ = cute.arch.block_dim()
    x = cutlass.Float32(tidx)
    begin = cute.arch.clock64()
    for i in cutlass.range(n, unroll=1):
        for _ in cutlass.range_constexpr(FMAS):
            x = x * a + b
        if cutlass.const_expr(kind == "mark"):
            iket.mark("m")
        if cutlass.const_expr(kind == "payload"):
            iket.mark("m", i)
        if cutlass.const_expr(kind == "range"):
            iket.range_push("r")
            iket.range_pop()
    end = cute.arch.clock64()
    out[bidx * width + tidx] = cutlass.Float32(end - begin) + x * cutlass.Float32(0.0)


@cute.jit
def launch(out: cute.Tensor, n: cutlass.Int32, a: cutlass.Float32, b: cutlass.Float32, kind: cutlass.Constexpr,
           ctas: cutlass.Int32, threads: cutlass.Int32):
    loop(out, n, a, b, kind).launch(grid=[ctas, 1, 1], block=[threads, 1, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=256)
    parser.add_argument("--warps", type=lambda text: [int(word) for word in text.split(",")], default=[1, 8, 32])
    options = parser.parse_args()
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    n, a, b = cutlass.Int32(options.iterations), cutlass.Float32(1.0), cutlass.Float32(0.001)
    for kind in ("clean", "mark", "payload", "range"):
        compiled = None
        for warps in options.warps:
            out = torch.zeros(sms * warps * 32, device="cuda")
            tensor = from_dlpack(out).mark_layout_dynamic()
            shape = cutlass.Int32(sms), cutlass.Int32(warps * 32)
            if compiled is None:
                compiled = cute.compile(launch, tensor, n, a, b, kind, *shape)
            medians = []
            for _ in range(5):
                compiled(tensor, n, a, b, *shape)
                torch.cuda.synchronize()
                medians.append(sorted(out.cpu().tolist())[out.numel() // 2])
            print(f"event {kind} {warps} {min(medians) / options.iterations:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
