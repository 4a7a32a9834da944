"""A PyTorch extension with marks: an RMS norm, compiled by load_inline, traced warp by warp.

    iket profile -- python3 torch_extension.py

load_inline calls nvcc with what `iket config --cflags --enable` says; $IKET names the program if it is not
on PATH. The kernel is launched from a plain C function through ctypes, without PyTorch's headers, so that
building takes seconds; an extension with at::Tensor in it needs no other flags.

Ends with 1 if the result is wrong, with 77 if something is missing to build it.
"""

import argparse
import contextlib
import ctypes
import os
import shutil
import tempfile

import marked

SOURCE = r"""
#include <iket/iket.cuh>
using namespace iket::literals;

// y = weight * x / sqrt(mean(x^2) + epsilon), a CTA a row.
extern "C" __global__ void RmsNorm(const float* x, const float* weight, float* y, int columns,
                                   float epsilon) {
  __shared__ float of_warp[32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0;
  {
    iket::range r{"squares"_ev, blockIdx.x};
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] * row[i];
    for (int lanes = 16; lanes != 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  }
  {
    iket::range r{"wait"_ev};  // for the slowest warp of the CTA
    __syncthreads();
  }
  iket::range r{"scale"_ev};
  float all = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all += of_warp[warp];
  const float factor = rsqrtf(all / columns + epsilon);
  float* out = y + static_cast<size_t>(blockIdx.x) * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = row[i] * factor * weight[i];
}

extern "C" int rms_norm(const float* x, const float* weight, float* y, int rows, int columns,
                        float epsilon, void* stream) {
  RmsNorm<<<rows, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, weight, y, columns, epsilon);
  return cudaGetLastError();
}
"""
ROWS, COLUMNS, THREADS, EPSILON, LAUNCHES = 512, 4096, 256, 1e-6, 3
# Three ranges a warp; the loops have the same trip count in all lanes.
EVENTS_PER_WARP = 6
EVENTS = ROWS * (THREADS // 32) * EVENTS_PER_WARP  # of a launch


def need():
    """Ends with 77 if something is missing to build it."""
    marked.need("torch")
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is None:
        marked.cannot_run("no CUDA toolkit: set CUDA_HOME to one that has bin/nvcc")
    for program in ("ninja", os.environ.get("CXX", "c++")):
        if shutil.which(program) is None:
            marked.cannot_run(f"no {program} on PATH")


def build(folder):
    """The extension as a library for ctypes, built in `folder`, or where PyTorch keeps them."""
    import torch
    from torch.utils.cpp_extension import load_inline

    # PyTorch adds this by itself, but not where it finds "arch" anywhere in our flags, as in a path.
    arch = "-arch=sm_{}{}".format(*torch.cuda.get_device_capability())
    path = load_inline(name="iket_rms_norm", cpp_sources="", cuda_sources=SOURCE,
                       extra_cuda_cflags=["-O3", "-std=c++20", arch, marked.iket_cflags()],
                       is_python_module=False, no_implicit_headers=True, build_directory=folder)
    library = ctypes.CDLL(path)
    pointer = ctypes.c_void_p
    library.rms_norm.argtypes = [pointer, pointer, pointer, ctypes.c_int, ctypes.c_int,
                                 ctypes.c_float, pointer]
    return library


def library(folder=None):
    need()
    return build(folder)


def arrays():
    """The input, the weight, and room for the result."""
    import torch

    torch.manual_seed(1)
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    return x, torch.randn(COLUMNS, device="cuda"), torch.zeros_like(x)


def launch(built, x, weight, y):
    """Into the current stream of PyTorch."""
    import torch

    error = built.rms_norm(x.data_ptr(), weight.data_ptr(), y.data_ptr(), ROWS, COLUMNS, EPSILON,
                           torch.cuda.current_stream().cuda_stream)
    if error != 0:
        marked.wrong(f"the launch failed: CUDA error {error}")


def check(x, weight, y):
    import torch

    exact = x.double()
    exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + EPSILON) * weight.double()
    if not torch.allclose(y.double(), exact, rtol=1e-5, atol=1e-6):
        marked.wrong(f"off by up to {float((y.double() - exact).abs().max())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true",
                        help="build in a new folder, which goes at the end, instead of in that of PyTorch's "
                             "extensions ($TORCH_EXTENSIONS_DIR)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() if options.fresh else contextlib.nullcontext() as folder:
        built = library(folder)
        x, weight, y = arrays()
        for _ in range(LAUNCHES):
            launch(built, x, weight, y)
        check(x, weight, y)
    marked.ok(LAUNCHES, LAUNCHES * EVENTS)


if __name__ == "__main__":
    main()
