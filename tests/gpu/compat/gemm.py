"""CUTLASS's persistent GEMM for Hopper as it is and with marks (gemm_marks.py), launched or timed.

    gemm.py EXAMPLE.py MARKED.py launch N      launches the marked kernel N times
    gemm.py EXAMPLE.py MARKED.py time          batches of launches of both in turns, by CUDA events: prints
                                               "gemm KERNEL MEDIAN LEAST MOST BATCHES", microseconds a launch

fp16, 4096^3, tile 128x256, clusters of 2x1, 64 k-steps a tile; 1,187,840 events a launch. Both kernels must compute the same
bits, and --check holds them against a product on the CPU.
"""
import argparse
import importlib.util
import statistics
import sys

import cuda.bindings.driver as driver
import torch

import cutlass
import cutlass.cute as cute
import cutlass.torch as cutlass_torch
import cutlass.utils

SIZE = 4096
TILE, CLUSTER = (128, 256), (2, 1)
EVENTS = 2 * 64 * 2 * 512 + 8 * 512 * (2 * 64 * 2 + 2)  # by the warp that loads, and by the eight that multiply


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # the DSL reads the source of its functions by it
    spec.loader.exec_module(found)
    return found


class Gemm:
    """A compiled kernel of one of the two files, with the product that it computes."""

    def __init__(self, name, path, a, b, stream):
        self.stream = driver.CUstream(stream.cuda_stream)
        gemm = module(name, path).HopperWgmmaGemmPersistentKernel(cutlass.Float32, TILE, CLUSTER, 1, True)
        c = cutlass_torch.matrix(1, SIZE, SIZE, False, cutlass.Float16)
        tensor_c, self.result = cutlass_torch.cute_tensor_like(c, cutlass.Float16, is_dynamic_layout=True,
                                                               assumed_align=16)
        self.tensors = a, b, tensor_c
        clusters = cutlass.utils.HardwareInfo().get_max_active_clusters(CLUSTER[0] * CLUSTER[1])
        self.compiled = cute.compile(gemm, *self.tensors, clusters, self.stream)

    def launch(self):
        self.compiled(*self.tensors, self.stream)


def batch(gemm, stream, launches):
    """Microseconds a launch."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record(stream)
    for _ in range(launches):
        gemm.launch()
    end.record(stream)
    end.synchronize()
    return 1000 * begin.elapsed_time(end) / launches


def timed(gemms, stream, options):
    """Microseconds a launch of each batch, the kernels in turns; two of each are not counted."""
    times = {name: [] for name in gemms}
    for i in range(options.batches + 2):
        for name, gemm in gemms.items():
            time = batch(gemm, stream, options.batch)
            if i >= 2:
                times[name].append(time)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example")
    parser.add_argument("marked")
    parser.add_argument("what", choices=("launch", "time"))
    parser.add_argument("launches", type=int, nargs="?", default=1)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    torch.manual_seed(8)
    stream = torch.cuda.Stream()
    matrices = [cutlass_torch.matrix(1, SIZE, SIZE, False, cutlass.Float16) for _ in range(2)]
    a, b = (cutlass_torch.cute_tensor_like(matrix, cutlass.Float16, is_dynamic_layout=True, assumed_align=16)[0]
            for matrix in matrices)
    gemms = {"marked": Gemm("gemm_marked", options.marked, a, b, stream)}
    if options.what == "time" or options.check:
        gemms["clean"] = Gemm("gemm_clean", options.example, a, b, stream)
    torch.cuda.synchronize()  # the matrices were made on another stream
    if options.what == "launch":
        for gemm in gemms.values():
            for _ in range(options.launches if gemm is gemms["marked"] else 1):
                gemm.launch()
        print(f"gemm: {options.launches} launches, {options.launches * EVENTS} events", flush=True)
    else:
        for name, times in timed(gemms, stream, options).items():
            print(f"gemm {name} {statistics.median(times):.2f} {min(times):.2f} {max(times):.2f} {len(times)}", flush=True)
    torch.cuda.synchronize()
    results = {name: gemm.result.cpu() for name, gemm in gemms.items()}
    if "clean" in results and not torch.equal(results["clean"], results["marked"]):
        print("gemm: the marked kernel computes something else than the clean one")
        return 1
    if options.check:
        expected = torch.einsum("mkl,nkl->mnl", *(matrix.to(torch.float32) for matrix in matrices))
        torch.testing.assert_close(results["marked"].to(torch.float32), expected, atol=0.1, rtol=1e-3)
        print("gemm: results as expected", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
