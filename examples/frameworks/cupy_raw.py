"""A CuPy RawModule with marks, compiled by NVRTC in the process, on two streams.

    iket profile -- python3 cupy_raw.py

Ends with 1 if the result is wrong, with 77 without CuPy.
"""

import marked

STREAMS, LAUNCHES = 2, 4  # launches of each stream


def main():
    marked.need("cupy")
    import cupy

    module = cupy.RawModule(code=marked.SOURCE, backend="nvrtc", options=marked.nvrtc_options())
    kernel = module.get_function("Run")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    outs = [cupy.zeros(marked.BLOCKS * marked.THREADS, dtype=cupy.uint32) for _ in streams]
    cupy.cuda.Device().synchronize()
    for _ in range(LAUNCHES):
        for stream, out in zip(streams, outs):
            with stream:
                kernel((marked.BLOCKS,), (marked.THREADS,), (out, cupy.uint32(marked.ROUNDS)))
    cupy.cuda.Device().synchronize()
    for out in outs:
        total = int(out.astype(cupy.uint64).sum())
        if total != marked.expected_sum():
            marked.wrong(f"the sum is {total}, not {marked.expected_sum()}")
    launches = STREAMS * LAUNCHES
    marked.ok(launches, launches * marked.EVENTS)


if __name__ == "__main__":
    main()
