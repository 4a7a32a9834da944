"""A CuPy RawModule with marks, compiled by NVRTC in the process."""

import os

import cupy
import marked_source as kernel

include = os.environ["IKET_GUEST_INCLUDE"]
module = cupy.RawModule(code=kernel.SOURCE, backend="nvrtc",
                        options=("-std=c++20", "-DIKET_ENABLE", f"-I{include}"))
out = cupy.zeros(kernel.BLOCKS * kernel.THREADS, dtype=cupy.uint32)
module.get_function("Run")((kernel.BLOCKS,), (kernel.THREADS,), (out, cupy.uint32(kernel.ROUNDS)))
print(int(out.astype(cupy.uint64).sum()))
