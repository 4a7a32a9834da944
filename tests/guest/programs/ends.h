// Of ends_other.cu: a function without marks, in which every second warp of a CTA ends.
#pragma once

__device__ unsigned EndOddWarps(unsigned n);
