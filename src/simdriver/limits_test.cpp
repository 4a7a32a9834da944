// What cuCtxSetLimit sets is what kernels get.
#include <algorithm>

#include "simdriver/testing.h"

namespace iket::simdriver::testing {
namespace {

class Limits : public WithModule {
 protected:
  void SetUp() override {
    WithModule::SetUp();
    ASSERT_CU(CU(cuMemAlloc)(&out, 64));
    ASSERT_CU(CU(cuMemsetD32)(out, 0, 16));
  }
  CUresult Launch(const char* kernel, int n) {
    void* params[] = {&out, &n};
    void* only[] = {&n};
    const bool prints = std::string(kernel) == "Chatter";
    return CU(cuLaunchKernel)(Function(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                              prints ? only : params, nullptr);
  }
  int Out() {
    int value = -1;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(&value, out, 4));
    return value;
  }
  static size_t Get(CUlimit limit) {
    size_t value = 0;
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxGetLimit)(&value, limit));
    return value;
  }

  CUdeviceptr out = 0;
};

TEST_F(Limits, AreGivenBackAndOfTheirContext) {
  EXPECT_EQ(Get(CU_LIMIT_STACK_SIZE), 1024u);
  EXPECT_EQ(Get(CU_LIMIT_PRINTF_FIFO_SIZE), 7u << 20);
  EXPECT_EQ(Get(CU_LIMIT_MALLOC_HEAP_SIZE), 8u << 20);
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_EQ(Get(CU_LIMIT_STACK_SIZE), 4096u);
  CUcontext other = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device));
  EXPECT_EQ(Get(CU_LIMIT_STACK_SIZE), 1024u);
  ASSERT_CU(CU(cuCtxDestroy)(other));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1 << 20));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY,
            CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, size_t{1} << 40));
  EXPECT_CU(CUDA_ERROR_UNSUPPORTED_LIMIT, CU(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2));
  EXPECT_EQ(Get(CU_LIMIT_STACK_SIZE), 4096u);
}

TEST_F(Limits, HeapOfMalloc) {
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
  ASSERT_CU(Launch("Hoard", 1000));
  EXPECT_EQ(Out(), 16);
  // It is used now.
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 2 << 20));
  EXPECT_EQ(Get(CU_LIMIT_MALLOC_HEAP_SIZE), 1u << 20);
  ASSERT_CU(Launch("Hoard", 1000));
  EXPECT_EQ(Out(), 0);  // nobody has freed anything
}

TEST_F(Limits, EachContextHasItsHeap) {
  ASSERT_CU(Launch("Hoard", 1000));
  EXPECT_EQ(Out(), 128);
  CUcontext other = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device));
  CUmodule here = nullptr;
  ASSERT_CU(CU(cuModuleLoadData)(&here, image.data()));
  std::swap(here, module);
  ASSERT_CU(Launch("Hoard", 1000));
  EXPECT_EQ(Out(), 128);
  std::swap(here, module);
  ASSERT_CU(CU(cuCtxDestroy)(other));
}

TEST_F(Limits, StackOfAKernelThatRecurses) {
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 256 << 10));
  ASSERT_CU(Launch("Descend", 2000));
  EXPECT_EQ(Out(), 2000);
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  ::testing::internal::CaptureStderr();
  ASSERT_CU(Launch("Descend", 2000));
  EXPECT_CU(CUDA_ERROR_HARDWARE_STACK_ERROR, CU(cuCtxSynchronize)());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("CTA (0, 0, 0), warp 0, lane 0: stack overflow"), std::string::npos) << said;
  EXPECT_NE(said.find("set CU_LIMIT_STACK_SIZE"), std::string::npos) << said;
}

TEST_F(Limits, AKnownFrameRaisesTheStack) {
  ASSERT_CU(Launch("BigFrame", 1499));
  EXPECT_EQ(Out(), 1499);
  EXPECT_GE(Get(CU_LIMIT_STACK_SIZE), 6000u);
}

TEST_F(Limits, BufferOfPrintf) {
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 3200));
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  ASSERT_CU(Launch("Chatter", 5000));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
  std::fflush(stdout);
  const std::string printed = ::testing::internal::GetCapturedStdout();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 100);
  EXPECT_EQ(printed.substr(0, 10), "line 4900\n");
  EXPECT_NE(said.find("Chatter: the oldest 4900 of its printf calls are not shown"),
            std::string::npos)
      << said;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20));
}

TEST_F(Limits, AKernelOfAGraphUsesThem) {
  ASSERT_CU(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  int most = 5;
  void* params[] = {&out, &most};
  CUDA_KERNEL_NODE_PARAMS launch{};
  launch.func = Function("Hoard");
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = params;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  ASSERT_CU(CU(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &launch));
  ASSERT_CU(CU(cuGraphInstantiate)(&executable, graph, 0));
  for (const int expected : {5, 5, 5, 1, 0}) {  // 16 in all
    ASSERT_CU(CU(cuGraphLaunch)(executable, nullptr));
    EXPECT_EQ(Out(), expected);
  }
  ASSERT_CU(CU(cuGraphExecDestroy)(executable));
  ASSERT_CU(CU(cuGraphDestroy)(graph));
}

}  // namespace
}  // namespace iket::simdriver::testing
