// SPDX-License-Identifier: Apache-2.0
//
// Prints which GPU this is, for tables whose programs do not say it.
#include "gpu_bench.h"

int main() { gpu_bench::PrintDevice(); }
