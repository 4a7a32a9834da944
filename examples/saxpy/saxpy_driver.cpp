// SPDX-License-Identifier: Apache-2.0
//
// saxpy in its driver-API form: the kernel comes from a cubin inside this program. saxpy.cu is the
// same with <<<>>>.
#include "common/embedded_cubin.h"
#include "common/gpu_driver.h"
#include "saxpy/saxpy.h"

int main(int argc, char** argv) {
  using namespace example;
  const saxpy::Options options = saxpy::ParseOptions(argc, argv);
  const Gpu gpu;
  const Kernel kernel(LoadModule(example_cubin), "Saxpy");
  const Array x(saxpy::Make(options.n, saxpy::X)), y(saxpy::Make(options.n, saxpy::Y));
  const unsigned grid = saxpy::GridSize(options.n, gpu.Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    kernel.Launch({grid}, {saxpy::kThreads}, options.n, saxpy::kFactor, x.data(), y.data());
  });
  return saxpy::Report(ProgramName(argv[0]), options, us, y.ToHost());
}
