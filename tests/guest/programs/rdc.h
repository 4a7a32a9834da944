// What rdc.cu uses of rdc_other.cu.
#pragma once

__device__ unsigned Other(unsigned x);
using Step = unsigned (*)(unsigned);
extern __device__ Step kTable[2];
