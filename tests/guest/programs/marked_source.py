"""The marked kernel of the Python guests: 8 blocks of 64 threads and 3 rounds are 96 events."""

SOURCE = """
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  unsigned value = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev, k};
    value = value * 1664525u + k;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
"""
BLOCKS, THREADS, ROUNDS = 8, 64, 3
