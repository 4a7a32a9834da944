"""What the scripts of this folder share: the flags of iket, a marked kernel for NVRTC, and the closing line.

The kernel's results are exact integers, and its loop has the same trips in all lanes, so that the number of
events is known beforehand.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys

SOURCE = r"""
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  unsigned value = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev, k};
    value = value * 1664525u + k;
  }
  iket::mark("done"_ev);
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
"""
BLOCKS, THREADS, ROUNDS = 32, 128, 5
EVENTS = BLOCKS * THREADS // 32 * (2 * ROUNDS + 1)  # of a launch


def expected_sum():
    """The sum over what a launch writes."""
    total = 0
    for value in range(BLOCKS * THREADS):
        for k in range(ROUNDS):
            value = (value * 1664525 + k) & 0xffffffff
        total += value
    return total


def cannot_run(why):
    print(why)
    sys.exit(77)


def need(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            cannot_run(f"no Python module {module}")


def wrong(what):
    print(f"wrong: {what}")
    sys.exit(1)


def ok(launches, events):
    """The closing line: what the captures of this run must hold, together."""
    print(f"ok: {launches} launches, {events} events")


def iket_cflags():
    """What `iket config` says, as one string quoted for a shell. $IKET names the program if it is not on PATH."""
    iket = os.environ.get("IKET", "iket")
    try:
        return subprocess.run([iket, "config", "--cflags", "--enable"], stdout=subprocess.PIPE,
                              check=True, text=True).stdout.strip()
    except FileNotFoundError:
        sys.exit(f"no program {iket}: put iket's bin folder on PATH, or set IKET")


def nvrtc_options():
    return ("-std=c++20", *shlex.split(iket_cflags()))


def nvcc():
    """The CUDA compiler of this machine, or ''."""
    roots = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    for root in [root for root in roots if root] + ["/usr/local/cuda"]:
        program = shutil.which(os.path.join(root, "bin", "nvcc"))
        if program:
            return program
    return shutil.which("nvcc") or ""
