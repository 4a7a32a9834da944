// SPDX-License-Identifier: Apache-2.0
//
// saxpy in its <<<>>> form. saxpy_driver.cpp is the same over the driver API.
#include "common/gpu_runtime.h"
#include "saxpy/saxpy.cuh"
#include "saxpy/saxpy.h"

int main(int argc, char** argv) {
  using namespace example;
  const saxpy::Options options = saxpy::ParseOptions(argc, argv);
  const Array x(saxpy::Make(options.n, saxpy::X)), y(saxpy::Make(options.n, saxpy::Y));
  const unsigned grid = saxpy::GridSize(options.n, Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    Saxpy<<<grid, saxpy::kThreads>>>(options.n, saxpy::kFactor, x.data(), y.data());
  });
  return saxpy::Report(ProgramName(argv[0]), options, us, y.ToHost());
}
