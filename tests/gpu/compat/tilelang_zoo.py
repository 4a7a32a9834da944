"""A TileLang kernel with every mark that its IKET API has, for one collector and then the other.

    tilelang_zoo.py [--payloads] [--launches N]

A range around the block and one in it, marks with a 32-bit integer and with a float; --payloads keeps the values, which
TileLang drops otherwise. Checks what the kernel computed.
"""
import argparse
import sys
import tempfile

import tilelang
import tilelang.language as T
import torch
from tilelang.tools.cuda import iket

N, THREADS = 512, 128


def saxpy(n, threads=THREADS, dtype=T.float32):
    @T.prim_func
    def main(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype), Z: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, threads), threads=threads) as bx, iket.range("block"):
            iket.mark("enter", payload=iket.payload(bx, dtype="int32"))
            for i in T.Parallel(threads):
                k = bx * threads + i
                with iket.range("body"):
                    Z[k] = X[k] * 2.0 + Y[k]
                iket.mark("value", payload=iket.payload(X[k], dtype="float32"))
            iket.mark("leave")

    return main


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--payloads", action="store_true")
    parser.add_argument("--launches", type=int, default=1)
    options = parser.parse_args()
    torch.cuda.init()
    with tempfile.TemporaryDirectory() as folder:
        with iket.session(output_dir=folder, runtime_payloads=options.payloads):
            kernel = tilelang.compile(saxpy(N), out_idx=-1, target="cuda", execution_backend="cython")
    a = torch.arange(N, device="cuda", dtype=torch.float32)
    b = torch.ones(N, device="cuda")
    for _ in range(options.launches):
        c = kernel(a, b)
    torch.cuda.synchronize()
    torch.testing.assert_close(c, a * 2 + b)
    print(f"tilelang_zoo: {options.launches} launches, results as expected", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
