// SPDX-License-Identifier: Apache-2.0
//
// The WGMMA GEMM in its <<<>>> form. gemm_wgmma_driver.cpp is the same over the driver API.
#include "common/gemm.h"
#include "common/gemm_check.cuh"
#include "common/gpu_runtime.h"
#include "gemm_wgmma/gemm_wgmma.cuh"

// The runtime finds the driver's function; the program itself is not linked with the driver.
static decltype(&cuTensorMapEncodeTiled) TensorMapEncoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  EXAMPLE_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                 cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "the driver has no cuTensorMapEncodeTiled: it is older than CUDA 12\n");
    std::exit(1);
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

int main(int argc, char** argv) {
  using namespace example;
  const GemmOptions options =
      ParseGemmOptions(argc, argv, "fp16 GEMM: TMA, WGMMA, clusters of two", {1, 8, 8});
  const GemmShape shape = options.shape;
  const GemmProblem problem(shape);
  const Array a(problem.a()), b(problem.b()), c(problem.unwritten_c());
  const gemm_wgmma::TensorMaps maps =
      gemm_wgmma::MakeTensorMaps(TensorMapEncoder(), a.data(), b.data(), c.data(), shape);

  EXAMPLE_CHECK(cudaFuncSetAttribute(gemm_wgmma::GemmWgmma,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     sizeof(gemm_wgmma::Shared)));
  const unsigned grid = gemm_wgmma::GridSize(shape.m, shape.n, Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    gemm_wgmma::GemmWgmma<<<grid, gemm_wgmma::kThreads, sizeof(gemm_wgmma::Shared)>>>(
        maps, shape.m, shape.n, shape.k);
  });

  const unsigned mismatches = CountMismatches(a, b, c, shape);
  return problem.Report(ProgramName(argv[0]), us, mismatches, problem.WrongSamples(c.ToHost()));
}
