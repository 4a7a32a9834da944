// Functions of mixed_other.cu: both kernels call Shared, one Alone.
#pragma once

__device__ unsigned Shared(unsigned x);
__device__ unsigned Alone(unsigned x);
