"""CuTe DSL kernels with every mark that its IKET API has, for one collector and then the other.

    zoo.py [--launches N] [types|ranges|many]...

types: a marker of each type of payload; ranges: pushed and own-ended ranges, nested, across iterations, by role and by
lane; many: 40 names, so that the module has NVIDIA's ExtendedNativeDump. Checks what the kernels computed. The code
between two marks takes the same time in every launch, so that two runs can be compared; --launches launches each kernel
so often.
"""
import argparse
import sys

import torch

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

iket = cute.experimental.iket
STEPS = 5
THREADS = 64


@cute.kernel
def k_types(out: cute.Tensor, n: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    iket.mark("plain")
    iket.mark("lit_int", -7)
    iket.mark("lit_float", 1.5)
    iket.mark("i8", cutlass.Int8(-8))
    iket.mark("u8", cutlass.Uint8(200))
    iket.mark("i16", cutlass.Int16(-1600))
    iket.mark("u16", cutlass.Uint16(60000))
    iket.mark("i32", n + cutlass.Int32(1))
    iket.mark("u32", cutlass.Uint32(4000000000))
    iket.mark("i64", cutlass.Int64(-0x100000001))
    iket.mark("u64", cutlass.Uint64(0x8000000000000001))
    iket.mark("f32", cutlass.Float32(tidx) + cutlass.Float32(0.25))
    iket.mark("f64", cutlass.Float64(3.141592653589793))
    out[bidx * THREADS + tidx] = cutlass.Float32(tidx)


@cute.kernel
def k_ranges(out: cute.Tensor, n: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    x = cutlass.Float32(tidx)
    life = iket.range_start("life")
    iket.range_push("outer", bidx)
    if warp == 0:
        iket.mark("role0", warp)
        for i in cutlass.range(n, unroll=1):
            iket.range_push("produce", i)
            for _ in cutlass.range_constexpr(32):
                x = x * cutlass.Float32(1.5) + cutlass.Float32(0.5)
            iket.range_pop()
    if warp == 1:
        token = iket.sentinel_token("span")
        for i in cutlass.range(n, unroll=1):
            if i > 0:
                iket.range_end(token)
            token = iket.range_start("span")
            for _ in cutlass.range_constexpr(16):
                x = x * cutlass.Float32(1.25) + cutlass.Float32(0.5)
        iket.range_end(token)
    if warp == 2:
        for i in cutlass.range(n, unroll=1):
            tile = iket.range_start("tile", i)
            iket.range_push("load")
            x = x + cutlass.Float32(1.0)
            iket.range_pop()
            iket.range_push("mma")
            for _ in cutlass.range_constexpr(24):
                x = x * cutlass.Float32(1.25) + cutlass.Float32(0.5)
            iket.range_pop()
            iket.range_end(tile, i)
    if warp == 3:
        if tidx % 2 == 1:
            iket.mark("odd_lane", tidx)
            x = x * cutlass.Float32(3.0)
        if tidx % 2 == 0:
            iket.mark("even_lane", tidx)
            x = x * cutlass.Float32(5.0)
    iket.range_pop()
    iket.range_end(life)
    out[bidx * 2 * THREADS + tidx] = x


@cute.kernel
def k_many(out: cute.Tensor, n: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    x = cutlass.Float32(tidx)
    for e in cutlass.range_constexpr(40):
        if cutlass.const_expr(e % 4 == 0):
            iket.mark("mark_%02d" % e)
        if cutlass.const_expr(e % 4 == 1):
            iket.mark("mark_%02d" % e, n)
        if cutlass.const_expr(e % 4 == 2):
            iket.range_push("range_%02d" % e)
            x = x * cutlass.Float32(1.25) + cutlass.Float32(0.5)
            iket.range_pop()
        if cutlass.const_expr(e % 4 == 3):
            token = iket.range_start("token_%02d" % e, n)
            x = x * cutlass.Float32(1.25) + cutlass.Float32(0.5)
            iket.range_end(token, n)
    out[bidx * THREADS + tidx] = x


@cute.jit
def types(out: cute.Tensor, n: cutlass.Int32):
    k_types(out, n).launch(grid=[2, 1, 1], block=[THREADS, 1, 1])


@cute.jit
def ranges(out: cute.Tensor, n: cutlass.Int32):
    k_ranges(out, n).launch(grid=[4, 1, 1], block=[2 * THREADS, 1, 1], cluster=[2, 1, 1])


@cute.jit
def many(out: cute.Tensor, n: cutlass.Int32):
    k_many(out, n).launch(grid=[2, 1, 1], block=[THREADS, 1, 1])


def repeated(x, factor, summand, times):
    for _ in range(times):
        x = x * factor + summand
    return x


def expected(name, thread):
    """What thread of the first CTA stores; all of it is exact in float, or as float rounds it below 1e-5."""
    if name == "types":
        return thread
    if name == "many":
        return repeated(thread, 1.25, 0.5, 20)
    warp = thread // 32
    if warp == 0:
        return repeated(thread, 1.5, 0.5, 32 * STEPS)
    if warp == 1:
        return repeated(thread, 1.25, 0.5, 16 * STEPS)
    if warp == 2:
        x = thread
        for _ in range(STEPS):
            x = repeated(x + 1.0, 1.25, 0.5, 24)
        return x
    return thread * (3.0 if thread % 2 else 5.0)


def main():
    kernels = {"types": types, "ranges": ranges, "many": many}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=1)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="types, ranges, many; by default all")
    options = parser.parse_args()
    for name in options.kernels or kernels:
        if name not in kernels:
            parser.error(f"no kernel {name}")
        out = torch.zeros(1024, device="cuda")
        tensor = from_dlpack(out)
        run = cute.compile(kernels[name], tensor, cutlass.Int32(STEPS))
        for _ in range(options.launches):
            run(tensor, cutlass.Int32(STEPS))
        torch.cuda.synchronize()
        threads = 2 * THREADS if name == "ranges" else THREADS
        for thread, found in enumerate(out[:threads].tolist()):
            if abs(found - expected(name, thread)) > 1e-4 * abs(found):
                print(f"zoo: {name}: thread {thread} has {found} and not {expected(name, thread)}")
                return 1
        print(f"zoo: {name}: {options.launches} launches, results as expected", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
