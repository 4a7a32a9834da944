// SPDX-License-Identifier: Apache-2.0
//
// The mma.sync GEMM in its driver-API form: the kernel comes from a cubin inside this program.
// gemm_mma.cu is the same with <<<>>>.
#include "common/embedded_cubin.h"
#include "common/gemm.h"
#include "common/gemm_check_driver.h"
#include "common/gpu_driver.h"
#include "gemm_mma/gemm_mma.h"

int main(int argc, char** argv) {
  using namespace example;
  const GemmOptions options =
      ParseGemmOptions(argc, argv, "fp16 GEMM: cp.async, mbarrier ring, mma.sync",
                       {gemm_mma::kTileM, gemm_mma::kTileN, gemm_mma::kTileK});
  const GemmShape shape = options.shape;
  const Gpu gpu;
  const CUmodule module = LoadModule(example_cubin);
  const GemmProblem problem(shape);
  const Array a(problem.a()), b(problem.b()), c(problem.unwritten_c());

  const Kernel gemm(module, "GemmMma", sizeof(gemm_mma::Shared));
  const unsigned grid = gemm_mma::GridSize(shape.m, shape.n, gpu.Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    gemm.Launch({grid}, {gemm_mma::kThreads}, a.data(), b.data(), c.data(), shape.m, shape.n,
                shape.k);
  });

  const unsigned mismatches = CountMismatches(module, a, b, c, shape);
  return problem.Report(ProgramName(argv[0]), us, mismatches, problem.WrongSamples(c.ToHost()));
}
