// SPDX-License-Identifier: Apache-2.0
//
// The mma.sync GEMM in its <<<>>> form. gemm_mma_driver.cpp is the same over the driver API.
#include "common/gemm.h"
#include "common/gemm_check.cuh"
#include "common/gpu_runtime.h"
#include "gemm_mma/gemm_mma.cuh"

int main(int argc, char** argv) {
  using namespace example;
  const GemmOptions options =
      ParseGemmOptions(argc, argv, "fp16 GEMM: cp.async, mbarrier ring, mma.sync",
                       {gemm_mma::kTileM, gemm_mma::kTileN, gemm_mma::kTileK});
  const GemmShape shape = options.shape;
  const GemmProblem problem(shape);
  const Array a(problem.a()), b(problem.b()), c(problem.unwritten_c());

  EXAMPLE_CHECK(cudaFuncSetAttribute(gemm_mma::GemmMma, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     sizeof(gemm_mma::Shared)));
  const unsigned grid = gemm_mma::GridSize(shape.m, shape.n, Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    gemm_mma::GemmMma<<<grid, gemm_mma::kThreads, sizeof(gemm_mma::Shared)>>>(
        a.data(), b.data(), c.data(), shape.m, shape.n, shape.k);
  });

  const unsigned mismatches = CountMismatches(a, b, c, shape);
  return problem.Report(ProgramName(argv[0]), us, mismatches, problem.WrongSamples(c.ToHost()));
}
