"""A program that traces itself, as a notebook would: NVRTC compiles a kernel with marks to a cubin, iket_embed.py
patches it, CuPy launches it, and a file holds what it recorded. No `iket profile`.

    python3 cupy_embed.py

Ends with 1 if the result or the capture is wrong, with 77 without CuPy.
"""

import json
import os
import subprocess
import tempfile

import iket_embed
import marked

LAUNCHES = 3


def compile_cubin(cupy):
    """marked.SOURCE for the current GPU."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(marked.SOURCE, "marked.cu", (), ())
    arch = f"-arch=sm_{cupy.cuda.Device().compute_capability}"
    try:
        nvrtc.compileProgram(program, (arch, *marked.nvrtc_options()))
        return nvrtc.getCUBIN(program)
    finally:
        nvrtc.destroyProgram(program)


def check(capture):
    iket = os.environ.get("IKET", "iket")
    report = subprocess.run([iket, "report", "--json", capture], stdout=subprocess.PIPE, check=True)
    trust = json.loads(report.stdout)["trust"]
    if trust["launches"]["complete"] != LAUNCHES or trust["counters"]["records_lost"] != 0:
        marked.wrong(f"the capture has {trust}")


def main():
    marked.need("cupy")
    import cupy

    tracer = iket_embed.Tracer()
    cupy.cuda.Device().use()
    out = cupy.zeros(marked.BLOCKS * marked.THREADS, dtype=cupy.uint32)
    image = tracer.patch(compile_cubin(cupy))
    module = cupy.cuda.function.Module()
    module.load(image.data)
    image.bind(module.ptr)
    kernel = module.get_function("Run")
    for _ in range(LAUNCHES):
        tracer.launching(kernel.ptr, (marked.BLOCKS,), (marked.THREADS,))
        kernel((marked.BLOCKS,), (marked.THREADS,), (out, cupy.uint32(marked.ROUNDS)))
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "notebook.iketcap")
        tracer.write(capture)
        check(capture)
    total = int(out.astype(cupy.uint64).sum())
    if total != marked.expected_sum():
        marked.wrong(f"the sum is {total}, not {marked.expected_sum()}")
    marked.ok(LAUNCHES, LAUNCHES * marked.EVENTS)


if __name__ == "__main__":
    main()
