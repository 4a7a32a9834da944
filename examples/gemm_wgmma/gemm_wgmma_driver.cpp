// SPDX-License-Identifier: Apache-2.0
//
// The WGMMA GEMM in its driver-API form: the kernel comes from a cubin inside this program.
// gemm_wgmma.cu is the same with <<<>>>.
#include "common/embedded_cubin.h"
#include "common/gemm.h"
#include "common/gemm_check_driver.h"
#include "common/gpu_driver.h"
#include "gemm_wgmma/gemm_wgmma.h"

int main(int argc, char** argv) {
  using namespace example;
  const GemmOptions options =
      ParseGemmOptions(argc, argv, "fp16 GEMM: TMA, WGMMA, clusters of two", {1, 8, 8});
  const GemmShape shape = options.shape;
  const Gpu gpu;
  const CUmodule module = LoadModule(example_cubin);
  const GemmProblem problem(shape);
  const Array a(problem.a()), b(problem.b()), c(problem.unwritten_c());
  const gemm_wgmma::TensorMaps maps =
      gemm_wgmma::MakeTensorMaps(cuTensorMapEncodeTiled, a.data(), b.data(), c.data(), shape);

  const Kernel gemm(module, "GemmWgmma", sizeof(gemm_wgmma::Shared));
  const unsigned grid = gemm_wgmma::GridSize(shape.m, shape.n, gpu.Multiprocessors());
  const double us = TimeLaunches(options.warmup, options.iterations, [&] {
    gemm.Launch({grid}, {gemm_wgmma::kThreads}, maps, shape.m, shape.n, shape.k);
  });

  const unsigned mismatches = CountMismatches(module, a, b, c, shape);
  return problem.Report(ProgramName(argv[0]), us, mismatches, problem.WrongSamples(c.ToHost()));
}
