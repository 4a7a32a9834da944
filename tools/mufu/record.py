#!/usr/bin/env python3
"""Records what the special function unit of a GPU computes, for solve.py.

    record.py OUT.npz        on a machine with a GPU, nvcc and cupy

sin.approx multiplies by 1/(2 pi) before the unit sees its argument: in the compiled code that factor is
made 1, so that the argument is in turns as the unit has it.
"""
import os
import struct
import subprocess
import sys
import tempfile

import cupy
import numpy as np

FLOATS = {"sin": "sin.approx.ftz.f32", "cos": "cos.approx.ftz.f32", "ex2": "ex2.approx.ftz.f32",
          "lg2": "lg2.approx.ftz.f32", "rcp": "rcp.approx.ftz.f32", "rsq": "rsqrt.approx.ftz.f32",
          "sqrt": "sqrt.approx.ftz.f32", "tanh": "tanh.approx.f32"}
DOUBLES = {"rcp64h": "rcp.approx.ftz.f64", "rsq64h": "rsqrt.approx.ftz.f64"}
HALVES = {"ex2.f16": "ex2.approx.f16", "tanh.f16": "tanh.approx.f16"}
KERNEL = """extern "C" __global__ void {name}(const unsigned* in, unsigned* out, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {body}
}}
"""
FLOAT = 'float y; asm("{} %0, %1;" : "=f"(y) : "f"(__uint_as_float(in[i]))); out[i] = __float_as_uint(y);'
DOUBLE = ('double y; asm("{} %0, %1;" : "=d"(y) : "d"(__hiloint2double(in[i], 0))); '
          'out[i] = __double2hiint(y);')
HALF = ('unsigned short y; asm("{} %0, %1;" : "=h"(y) : "h"(static_cast<unsigned short>(in[i]))); '
        'out[i] = y;')


def module():
    source = "".join(KERNEL.format(name=name.replace(".", "_"), body=body.format(ptx))
                     for group, body in ((FLOATS, FLOAT), (DOUBLES, DOUBLE), (HALVES, HALF))
                     for name, ptx in group.items())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mufu.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["nvcc", "-arch=native", "-cubin", "-o", path + "bin", path], check=True)
        with open(path + "bin", "rb") as file:
            code = file.read()
        turns, one = struct.pack("<I", 0x3e22f983), struct.pack("<f", 1)
        if code.count(turns) != 2:
            raise SystemExit("record: 1/(2 pi) is not where it was in nvcc 13.0's code")
        with open(path + "bin", "wb") as file:
            file.write(code.replace(turns, one))
        return cupy.RawModule(path=path + "bin")


def arguments():
    """What is recorded: (function, kind, first, stride, count), as in tests/data/sim/mufu.txt."""
    one = 0x3f800000
    for name in (*FLOATS, *DOUBLES):
        yield name, "bits", 0, 1 << 14, 1 << 18
        yield name, "bits", 12345, 1 << 14, 1 << 18
    for name in ("rcp", "lg2"):
        yield name, "bits", one, 4, 1 << 21
    yield "lg2", "bits", 0x3f000000, 4, 1 << 21
    for name in ("rsq", "sqrt"):
        yield name, "bits", one, 16, 1 << 20
    yield "rcp64h", "bits", 0x3ff00000, 1, 1 << 20
    yield "rsq64h", "bits", 0x3ff00000, 2, 1 << 20
    for name, value in (("sin", 0.2), ("sin", 0.03), ("sin", 0.001), ("lg2", 1.3), ("ex2", 0.3),
                        ("ex2", 0.01), ("rcp", 1.7), ("rsq", 1.7), ("sqrt", 2.9), ("tanh", 0.7),
                        ("tanh", 0.02)):
        yield name, "bits", int(np.float32(value).view(np.uint32)), 1, 1 << 14
    for exponent in range(112, 126):
        yield "sin", "bits", exponent << 23, 512, 1 << 14
    for exponent in range(116, 132):
        yield "tanh", "bits", exponent << 23, 128, 1 << 16
    for name in ("sin", "cos"):
        yield name, "fraction", 0, 23, 1 << 21
        yield name, "fraction", 0, 16, 1 << 18
    yield "ex2", "fraction", 0, 21, 1 << 21
    for name in HALVES:
        yield name, "half", 0, 1, 1 << 16


def words(kind, first, stride, count):
    i = np.arange(count, dtype=np.uint64)
    if kind == "fraction":
        return (i / 2.0 ** stride).astype(np.float32).view(np.uint32)
    return (first + i * stride).astype(np.uint32)


def main():
    kernels, results = module(), {}
    for row in arguments():
        name, argument = row[0], cupy.asarray(words(*row[1:]))
        result = cupy.empty_like(argument)
        kernels.get_function(name.replace(".", "_"))(
            ((argument.size + 255) // 256,), (256,), (argument, result, np.int32(argument.size)))
        results[" ".join(map(str, row))] = result.get()
    np.savez_compressed(sys.argv[1], **results)


if __name__ == "__main__":
    main()
