"""A JAX FFI call with marks: a CUDA kernel that XLA calls from a jitted function.

    iket profile -- python3 jax_ffi.py

Compiles with nvcc ($CUDA_HOME, /usr/local/cuda or PATH) what `iket config --cflags --enable` says, which takes
some seconds. Ends with 1 if the result is wrong, with 77 if something is missing.
"""

import ctypes
import os
import shlex
import subprocess
import tempfile

import marked

SOURCE = r"""
#include <cuda_runtime.h>
#include <iket/iket.cuh>

#include "xla/ffi/api/ffi.h"
using namespace iket::literals;
namespace ffi = xla::ffi;

__global__ void Mix(const int* x, int* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int value;
  {
    iket::range r{"load"_ev, blockIdx.x};
    value = __ldcv(x + i);
  }
  for (int k = 0; k < 4; ++k) {
    iket::range r{"mix"_ev, k};
    value = (value * 31 + k) & 0xffff;
  }
  iket::mark("store"_ev, value);
  y[i] = value;
}

static ffi::Error Run(cudaStream_t stream, ffi::Buffer<ffi::S32> x, ffi::ResultBuffer<ffi::S32> y) {
  const unsigned blocks = static_cast<unsigned>(x.element_count() / THREADS);
  Mix<<<blocks, THREADS, 0, stream>>>(x.typed_data(), y->typed_data());
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return ffi::Error::Internal(cudaGetErrorString(error));
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(IketMix, Run,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());
"""
BLOCKS, THREADS, CALLS = 16, 128, 3
CALLS_OF_FUNCTION = 2  # f calls the kernel twice
EVENTS = BLOCKS * THREADS // 32 * (2 + 2 * 4 + 1)  # of a launch


def compile_command(nvcc, include, arch, source, output):
    return [nvcc, "-std=c++20", "-O3", f"-arch={arch}", *shlex.split(marked.iket_cflags()),
            f"-DTHREADS={THREADS}", f"-I{include}", "-w", "-Xcompiler=-fPIC", "-shared", "-o", output, source]


def build(folder):
    import jax

    nvcc = marked.nvcc()
    if not nvcc:
        marked.cannot_run("no nvcc: set CUDA_HOME")
    source, output = os.path.join(folder, "mix.cu"), os.path.join(folder, "mix.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    arch = "sm_" + jax.devices()[0].compute_capability.replace(".", "")
    subprocess.run(compile_command(nvcc, jax.ffi.include_dir(), arch, source, output), check=True)
    return ctypes.CDLL(output)


def expected(x):
    for _ in range(CALLS_OF_FUNCTION):
        for k in range(4):
            x = (x * 31 + k) & 0xffff
        x = x + 1
    return x


def main():
    marked.need("jax", "jaxlib", "numpy")
    # Or XLA takes most of the device's memory, of which iket's rings need 270 MiB.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import numpy

    if jax.default_backend() != "gpu":
        marked.cannot_run("this JAX has no GPU")
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
    jax.ffi.register_ffi_target("iket_mix", jax.ffi.pycapsule(library.IketMix), platform="CUDA")

    def mix(x):
        return jax.ffi.ffi_call("iket_mix", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    @jax.jit
    def f(x):
        for _ in range(CALLS_OF_FUNCTION):
            x = mix(x) + 1
        return x

    for call in range(CALLS):
        x = numpy.arange(BLOCKS * THREADS, dtype=numpy.int32) + call
        if not numpy.array_equal(numpy.asarray(f(x)), expected(x)):
            marked.wrong(f"the result of call {call}")
    launches = CALLS * CALLS_OF_FUNCTION
    marked.ok(launches, launches * EVENTS)


if __name__ == "__main__":
    main()
