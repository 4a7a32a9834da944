"""Processes of Python's multiprocessing, by fork (before CUDA) and by spawn: each has a capture of its own.

    iket profile -- python3 multiprocess.py

Ends with 1 if the result is wrong, with 77 without CuPy.
"""

import multiprocessing

import marked

CHILDREN, LAUNCHES = 2, 3  # children of each method, launches of each child


def child(number, results):
    import cupy

    module = cupy.RawModule(code=marked.SOURCE, backend="nvrtc", options=marked.nvrtc_options())
    kernel = module.get_function("Run")
    out = cupy.zeros(marked.BLOCKS * marked.THREADS, dtype=cupy.uint32)
    for _ in range(LAUNCHES):
        kernel((marked.BLOCKS,), (marked.THREADS,), (out, cupy.uint32(marked.ROUNDS)))
    results.put((number, int(out.astype(cupy.uint64).sum())))


def main():
    marked.need("cupy")  # which looks for it; the parent itself never touches the GPU
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        results = context.SimpleQueue()
        children = [context.Process(target=child, args=(number, results)) for number in range(CHILDREN)]
        for process in children:
            process.start()
        for process in children:
            process.join()
        if any(process.exitcode != 0 for process in children):
            marked.wrong(f"by {method}: exit codes {[process.exitcode for process in children]}")
        said = sorted(results.get() for _ in children)
        if said != [(number, marked.expected_sum()) for number in range(CHILDREN)]:
            marked.wrong(f"by {method}: {said}")
    launches = 2 * CHILDREN * LAUNCHES
    marked.ok(launches, launches * marked.EVENTS)


if __name__ == "__main__":
    main()
