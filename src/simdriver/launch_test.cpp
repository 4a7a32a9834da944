#include <algorithm>
#include <cstring>
#include <numeric>

#include "simdriver/testing.h"

namespace iket::simdriver::testing {
namespace {

using Module = WithModule;

TEST_F(Module, GlobalsAreReadAndWritten) {
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  ASSERT_CU(CU(cuModuleGetGlobal)(&counter, &bytes, module, "counter"));
  EXPECT_EQ(bytes, 4u);
  int value = 0;
  ASSERT_CU(CU(cuMemcpyDtoH)(&value, counter, 4));
  EXPECT_EQ(value, 7);
  int by = 5;
  ASSERT_CU(Launch("AddToCounter", 1, {&by}));
  ASSERT_CU(CU(cuMemcpyDtoH)(&value, counter, 4));
  EXPECT_EQ(value, 12);
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetGlobal)(&counter, &bytes, module, "no"));
  CUfunction function = nullptr;
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetFunction)(&function, module, "no"));
}

TEST_F(Module, ConstantsAreSetThroughTheirAddress) {
  constexpr int kCount = 100;
  std::vector<int> from(kCount);
  std::iota(from.begin(), from.end(), 1);
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  CUdeviceptr factor = 0;
  ASSERT_CU(CU(cuMemAlloc)(&in, kCount * 4));
  ASSERT_CU(CU(cuMemAlloc)(&out, kCount * 4));
  ASSERT_CU(CU(cuMemcpyHtoD)(in, from.data(), kCount * 4));
  ASSERT_CU(CU(cuModuleGetGlobal)(&factor, nullptr, module, "factor"));
  int n = kCount;
  for (int by : {3, 11}) {
    if (by != 3) ASSERT_CU(CU(cuMemcpyHtoD)(factor, &by, 4));
    void* params[] = {&out, &in, &n};
    ASSERT_CU(
        CU(cuLaunchKernel)(Function("Scale"), 4, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
    std::vector<int> to(kCount);
    ASSERT_CU(CU(cuMemcpyDtoH)(to.data(), out, kCount * 4));
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(to[i], (i + 1) * by);
  }
}

TEST_F(Module, ArgumentsComeAsPointersOrAsABuffer) {
  CUdeviceptr to = 0;
  ASSERT_CU(CU(cuMemAlloc)(&to, 24));
  char a = -3;
  double b = 1e6;
  short c = 77;
  ASSERT_CU(Launch("Mixed", 1, {&a, &b, &c, &to}));
  int64_t values[3] = {};
  ASSERT_CU(CU(cuMemcpyDtoH)(values, to, sizeof values));
  EXPECT_EQ(values[0], -3);
  EXPECT_EQ(values[1], 1000000);
  EXPECT_EQ(values[2], 77);

  const CUfunction mixed = Function("Mixed");
  std::vector<char> buffer;
  const void* sources[] = {&a, &b, &c, &to};
  a = 5;
  c = -1;
  for (size_t i = 0; i < 4; ++i) {
    size_t offset = 0;
    size_t size = 0;
    ASSERT_CU(CU(cuFuncGetParamInfo)(mixed, i, &offset, &size));
    buffer.resize(std::max(buffer.size(), offset + size));
    std::memcpy(buffer.data() + offset, sources[i], size);
  }
  size_t offset = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuFuncGetParamInfo)(mixed, 4, &offset, nullptr));
  size_t bytes = buffer.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  ASSERT_CU(CU(cuLaunchKernel)(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  ASSERT_CU(CU(cuMemcpyDtoH)(values, to, sizeof values));
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[2], -1);
}

TEST_F(Module, LaunchesThatCannotRunAreRefused) {
  CUdeviceptr to = 0;
  ASSERT_CU(CU(cuMemAlloc)(&to, 4096));
  int n = 4;
  const auto launch = [&](const char* name, unsigned grid, unsigned block, unsigned shared) {
    void* params[] = {&to, &n};
    return CU(cuLaunchKernel)(Function(name), grid, 1, 1, block, 1, 1, shared, nullptr, params,
                              nullptr);
  };
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch("Increment", 0, 1, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch("Increment", 1, 1025, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch("Bounded", 1, 65, 0));
  EXPECT_CU(CUDA_SUCCESS, launch("Bounded", 1, 64, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE,
            CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  // 48 KiB without asking for more.
  n = 40000;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch("DynamicShared", 1, 1, 160000));
  const CUfunction dynamic = Function("DynamicShared");
  EXPECT_CU(
      CUDA_ERROR_INVALID_VALUE,
      CU(cuFuncSetAttribute)(dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000));
  ASSERT_CU(
      CU(cuFuncSetAttribute)(dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 160000));
  ASSERT_CU(launch("DynamicShared", 1, 1, 160000));
  int value = 0;
  ASSERT_CU(CU(cuMemcpyDtoH)(&value, to, 4));
  EXPECT_EQ(value, 40000);
  // None of that has harmed the context.
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
}

TEST_F(Module, AttributesAndOccupancy) {
  const CUfunction bounded = Function("Bounded");
  int value = 0;
  ASSERT_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
  EXPECT_EQ(value, 64);
  ASSERT_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, bounded));
  EXPECT_EQ(value, 90);
  ASSERT_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, bounded));
  EXPECT_GT(value, 0);
  int ctas = 0;
  ASSERT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&ctas, bounded, 64, 0));
  EXPECT_EQ(ctas, 32);  // 64 warps of 32 CTAs
  ASSERT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&ctas, bounded, 64, 100000));
  EXPECT_EQ(ctas, 2);  // 228 KiB of shared memory
  ASSERT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&ctas, bounded, 65, 0));
  EXPECT_EQ(ctas, 0);
  int grid = 0;
  int block = 0;
  ASSERT_CU(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, bounded, nullptr, 0, 0));
  EXPECT_EQ(block, 64);
  EXPECT_EQ(grid, 32 * 132);
}

TEST_F(Module, CooperativeLaunchesMustFit) {
  CUdeviceptr to = 0;
  ASSERT_CU(CU(cuMemAlloc)(&to, 4096));
  void* params[] = {&to};
  const CUfunction bounded = Function("Bounded");
  EXPECT_CU(CUDA_SUCCESS,
            CU(cuLaunchCooperativeKernel)(bounded, 8, 1, 1, 64, 1, 1, 0, nullptr, params));
  EXPECT_CU(
      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
      CU(cuLaunchCooperativeKernel)(bounded, 32 * 132 + 1, 1, 1, 64, 1, 1, 0, nullptr, params));
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = 32 * 132 + 1;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  EXPECT_CU(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            CU(cuLaunchKernelEx)(&config, bounded, params, nullptr));
  config.gridDimX = 4;
  EXPECT_CU(CUDA_SUCCESS, CU(cuLaunchKernelEx)(&config, bounded, params, nullptr));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
}

using Library = WithContext;

TEST_F(Library, KernelsRunInEveryContext) {
  const auto image = ReadFile(KernelFile("testing_kernels.fatbin"));
  CUlibrary library = nullptr;
  ASSERT_CU(
      CU(cuLibraryLoadData)(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  ASSERT_CU(CU(cuLibraryGetKernel)(&kernel, library, "AddToCounter"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuLibraryGetKernel)(&kernel, library, "no"));
  const char* name = nullptr;
  ASSERT_CU(CU(cuKernelGetName)(&name, kernel));
  EXPECT_STREQ(name, "AddToCounter");
  CUcontext other = nullptr;
  int by = 1;
  void* params[] = {&by};
  const auto counter = [&] {
    CUdeviceptr address = 0;
    int value = 0;
    EXPECT_CU(CUDA_SUCCESS, CU(cuLibraryGetGlobal)(&address, nullptr, library, "counter"));
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(&value, address, 4));
    return value;
  };
  // A kernel may be launched as it is, or as a function of the context.
  ASSERT_CU(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                               params, nullptr));
  CUfunction function = nullptr;
  ASSERT_CU(CU(cuKernelGetFunction)(&function, kernel));
  ASSERT_CU(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(counter(), 9);
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device));
  EXPECT_EQ(counter(), 7);  // each context has its own variables
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE,
            CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  ASSERT_CU(CU(cuCtxDestroy)(other));
  EXPECT_EQ(counter(), 9);
  unsigned count = 0;
  ASSERT_CU(CU(cuLibraryGetKernelCount)(&count, library));
  EXPECT_GE(count, 12u);
  ASSERT_CU(CU(cuLibraryUnload)(library));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, CU(cuKernelGetFunction)(&function, kernel));
}

// --- images that cannot run ----------------------------------------------------------------------

struct BadImage {
  const char* file;
  CUresult error;
  const char* said;
};

TEST_F(Library, BadImagesAreRefusedWithOneLine) {
  const BadImage images[] = {
      {"testing_kernels.sm_80.cubin", CUDA_ERROR_NO_BINARY_FOR_GPU, "the cubin is for sm_80"},
      {"testing_kernels.sm_80.fatbin", CUDA_ERROR_NO_BINARY_FOR_GPU, "holds code for sm_80"},
      {"testing_kernels.ptx", CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX only"},
      {"testing_kernels.ptx.fatbin", CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX only"},
  };
  for (const BadImage& bad : images) {
    auto image = ReadFile(KernelFile(bad.file));
    image.push_back(0);
    CUmodule module = nullptr;
    ::testing::internal::CaptureStderr();
    SCOPED_TRACE(bad.file);
    EXPECT_CU(bad.error, CU(cuModuleLoadData)(&module, image.data()));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(bad.said), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  const char garbage[64] = "this is no code";
  CUmodule module = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_CU(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoadData)(&module, garbage));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuModuleLoadData)(&module, nullptr));
  EXPECT_CU(CUDA_ERROR_FILE_NOT_FOUND, CU(cuModuleLoad)(&module, "/no/such/file"));
  ::testing::internal::GetCapturedStderr();
}

TEST_F(Library, CutFilesAreRefused) {
  const auto whole = ReadFile(KernelFile("testing_kernels.sm_90.cubin"));
  const std::string path = ::testing::TempDir() + "/cut.cubin";
  ::testing::internal::CaptureStderr();
  for (size_t eighths = 0; eighths < 8; ++eighths) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fwrite(whole.data(), 1, whole.size() * eighths / 8, file);
    std::fclose(file);
    CUmodule module = nullptr;
    SCOPED_TRACE(eighths);
    EXPECT_CU(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoad)(&module, path.c_str()));
  }
  ::testing::internal::GetCapturedStderr();
  std::remove(path.c_str());
}

}  // namespace
}  // namespace iket::simdriver::testing
