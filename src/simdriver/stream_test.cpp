#include <atomic>
#include <chrono>
#include <thread>

#include "simdriver/testing.h"

namespace iket::simdriver::testing {
namespace {

class Stream : public WithModule {
 protected:
  void SetUp() override {
    WithModule::SetUp();
    ASSERT_CU(CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuStreamCreate)(&two, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuMemAlloc)(&flag, 4));
    ASSERT_CU(CU(cuMemAlloc)(&value, 4));
    ASSERT_CU(CU(cuMemsetD32)(flag, 0, 1));
    ASSERT_CU(CU(cuMemsetD32)(value, 0, 1));
    ASSERT_CU(CU(cuCtxSynchronize)());
  }
  CUresult Wait(CUstream stream) { return Launch("WaitFor", 1, {&flag}, stream); }
  CUresult Store(CUdeviceptr to, int stored, CUstream stream) {
    return Launch("Store", 1, {&to, &stored}, stream);
  }
  // Without a stream that could itself wait for what is open.
  void Open() { ASSERT_CU(Store(flag, 1, two)); }
  int Value() {
    int read = -1;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoHAsync)(&read, value, 4, two));
    return read;
  }

  CUstream one = nullptr;
  CUstream two = nullptr;
  CUdeviceptr flag = 0;
  CUdeviceptr value = 0;
};

TEST_F(Stream, RunsInOrderAndBesideOthers) {
  ASSERT_CU(Wait(one));
  ASSERT_CU(Store(value, 5, one));
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(one));
  EXPECT_EQ(Value(), 0);  // `two` runs while `one` waits
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_CU(CUDA_SUCCESS, CU(cuStreamQuery)(one));
  EXPECT_EQ(Value(), 5);
}

// A reader of traces matches launches by it.
TEST_F(Stream, GridIdsCountTheCallsAndNotTheRuns) {
  CUdeviceptr ids = 0;
  ASSERT_CU(CU(cuMemAlloc)(&ids, 16));
  CUdeviceptr second = ids + 8;
  ASSERT_CU(Wait(one));
  ASSERT_CU(Launch("StoreGridId", 1, {&ids}, one));
  ASSERT_CU(Launch("StoreGridId", 1, {&second}, two));
  ASSERT_CU(CU(cuStreamSynchronize)(two));  // the second call has run, the first one has not
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  uint64_t read[2] = {};
  ASSERT_CU(CU(cuMemcpyDtoH)(read, ids, sizeof read));
  EXPECT_EQ(read[0] + 1, read[1]);
}

TEST_F(Stream, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  CUstream blocking = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(Wait(blocking));
  ASSERT_CU(Store(value, 1, nullptr));                    // after the wait
  ASSERT_CU(Launch("Increment", 1, {&value}, blocking));  // after the store
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(nullptr));
  EXPECT_EQ(Value(), 0);
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(blocking));
  EXPECT_EQ(Value(), 2);
}

TEST_F(Stream, PerThreadStreamsDoNotWaitForEachOther) {
  ASSERT_CU(Wait(CU_STREAM_PER_THREAD));
  std::thread([&] {
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSetCurrent)(context));
    EXPECT_CU(CUDA_SUCCESS, Store(value, 8, CU_STREAM_PER_THREAD));
    EXPECT_CU(CUDA_SUCCESS, CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_EQ(Value(), 8);
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  // The twins of the functions mean that stream by 0.
  const auto launch = reinterpret_cast<decltype(&::cuLaunchKernel)>(Symbol("cuLaunchKernel_ptsz"));
  const int zero = 0;
  ASSERT_CU(CU(cuMemcpyHtoD)(flag, &zero, 4));
  void* params[] = {&flag};
  ASSERT_CU(launch(Function("WaitFor"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(CU_STREAM_PER_THREAD));
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
}

TEST_F(Stream, EventsOrderStreamsAndTellTheTime) {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  ASSERT_CU(CU(cuEventCreate)(&begin, CU_EVENT_DEFAULT));
  ASSERT_CU(CU(cuEventCreate)(&end, CU_EVENT_DEFAULT));
  EXPECT_CU(CUDA_SUCCESS, CU(cuEventQuery)(begin));  // never recorded
  float ms = -1;
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime)(&ms, begin, end));
  ASSERT_CU(CU(cuEventRecord)(begin, one));
  ASSERT_CU(Wait(one));
  ASSERT_CU(CU(cuEventRecord)(end, one));
  CUstream third = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&third, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(CU(cuStreamWaitEvent)(third, end, 0));
  ASSERT_CU(Store(value, 3, third));
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(end));
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuEventElapsedTime)(&ms, begin, end));
  EXPECT_EQ(Value(), 0);
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(third));
  EXPECT_EQ(Value(), 3);
  ASSERT_CU(CU(cuEventSynchronize)(end));
  ASSERT_CU(CU(cuEventElapsedTime)(&ms, begin, end));
  EXPECT_GE(ms, 0);
  int turns = 20000;
  ASSERT_CU(CU(cuEventRecord)(begin, one));
  ASSERT_CU(Launch("Loop", 1, {&value, &turns}, one));
  ASSERT_CU(CU(cuEventRecord)(end, one));
  ASSERT_CU(CU(cuEventSynchronize)(end));
  ASSERT_CU(CU(cuEventElapsedTime)(&ms, begin, end));
  EXPECT_GT(ms, 20000 / 1.98e9 * 1e3);  // more than a cycle a turn, in ms
  ASSERT_CU(CU(cuEventDestroy)(begin));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, CU(cuEventRecord)(begin, one));
}

TEST_F(Stream, HostFunctionsRunInOrderAndMayNotCallBack) {
  struct Seen {
    std::atomic<int> calls{0};
    std::atomic<CUresult> inside{CUDA_SUCCESS};
  } seen;
  ASSERT_CU(Wait(one));
  ASSERT_CU(CU(cuLaunchHostFunc)(
      one,
      [](void* data) {
        auto* to = static_cast<Seen*>(data);
        to->inside = CU(cuCtxSynchronize)();
        ++to->calls;
      },
      &seen));
  EXPECT_EQ(seen.calls, 0);
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.inside, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Stream, LegacyStreamDoesNotCareForNonBlockingStreams) {
  ASSERT_CU(Wait(one));
  EXPECT_CU(CUDA_SUCCESS, CU(cuStreamQuery)(nullptr));
  ASSERT_CU(Store(value, 4, nullptr));
  ASSERT_CU(CU(cuStreamSynchronize)(nullptr));
  EXPECT_EQ(Value(), 4);
  Open();
}

TEST_F(Stream, DestroyedStreamsFinishTheirWork) {
  CUstream third = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&third, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(Wait(third));
  ASSERT_CU(Store(value, 6, third));
  ASSERT_CU(CU(cuStreamDestroy)(third));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, CU(cuStreamSynchronize)(third));
  EXPECT_EQ(Value(), 0);
  Open();
  ASSERT_CU(CU(cuCtxSynchronize)());  // which also waits for a stream that is gone
  EXPECT_EQ(Value(), 6);
}

// --- faults --------------------------------------------------------------------------------------

class Faults : public WithModule {
 protected:
  // Launches, and returns what the next synchronization says.
  CUresult Run(const char* name, std::vector<void*> params = {}) {
    ::testing::internal::CaptureStderr();
    EXPECT_CU(CUDA_SUCCESS, Launch(name, 1, std::move(params)));
    const CUresult result = CU(cuCtxSynchronize)();
    said = ::testing::internal::GetCapturedStderr();
    return result;
  }
  std::string said;
};

TEST_F(Faults, StickToTheirContextAlone) {
  CUdeviceptr before = 0;
  ASSERT_CU(CU(cuMemAlloc)(&before, 4));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, Run("Fault"));
  EXPECT_NE(said.find("Fault"), std::string::npos) << said;
  int value = 0;
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemcpyDtoH)(&value, before, 4));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemAlloc)(&before, 4));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuStreamSynchronize)(nullptr));
  // Who the context is, it still says; and another one works.
  CUdevice where = -1;
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxGetDevice)(&where));
  CUcontext other = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemAlloc)(&before, 4));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxDestroy)(other));
}

TEST_F(Faults, MisalignedAccess) {
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAlloc)(&memory, 64));
  EXPECT_CU(CUDA_ERROR_MISALIGNED_ADDRESS, Run("Misaligned", {&memory}));
}

TEST_F(Faults, Trap) { EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, Run("Trap")); }

TEST_F(Faults, LaterWorkIsDropped) {
  CUstream stream = nullptr;
  int calls = 0;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  ::testing::internal::CaptureStderr();
  ASSERT_CU(Launch("Fault", 1, {}, stream));
  // A host function is not called after an error; a callback is, and is told.
  CU(cuLaunchHostFunc)(stream, [](void* data) { *static_cast<int*>(data) += 1; }, &calls);
  CU(cuStreamAddCallback)(
      stream,
      [](CUstream, CUresult status, void* data) {
        *static_cast<int*>(data) += status == CUDA_ERROR_ILLEGAL_ADDRESS ? 10 : 100;
      },
      &calls, 0);
  EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
  ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(calls == 10 || calls == 0) << calls;  // 0: the launch had failed before the calls
}

// --- ends ----------------------------------------------------------------------------------------

class Ends : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // A primary context with an endless kernel in it.
  static void StartForever() {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction forever = nullptr;
    CUdeviceptr flag = 0;
    CU(cuInit)(0);
    CU(cuDevicePrimaryCtxRetain)(&context, 0);
    CU(cuCtxSetCurrent)(context);
    const auto image = ReadFile(KernelFile("testing_kernels.sm_90.cubin"));
    CU(cuModuleLoadData)(&module, image.data());
    CU(cuModuleGetFunction)(&forever, module, "Forever");
    CU(cuMemAlloc)(&flag, 4);
    CU(cuMemsetD32)(flag, 0, 1);
    void* params[] = {&flag};
    const CUresult launched =
        CU(cuLaunchKernel)(forever, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr);
    if (launched != CUDA_SUCCESS) std::exit(3);
  }
};

TEST_F(Ends, ProcessExitsWithARunningKernel) {
  EXPECT_EXIT(
      {
        StartForever();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Ends, InterruptEndsTheProcess) {
  EXPECT_EXIT(
      {
        StartForever();
        raise(SIGINT);
        CU(cuCtxSynchronize)();
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST_F(Ends, LimitTurnsAnEndlessKernelIntoATimeout) {
  EXPECT_EXIT(
      {
        setenv("IKET_SIM_MAX_SECONDS", "0.2", 1);
        StartForever();
        const bool timed_out = CU(cuCtxSynchronize)() == CUDA_ERROR_LAUNCH_TIMEOUT;
        std::exit(timed_out ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "Forever: stopped after IKET_SIM_MAX_SECONDS");
}

TEST_F(Ends, LimitThatIsNoNumberIsSaid) {
  EXPECT_EXIT(
      {
        setenv("IKET_SIM_MAX_SECONDS", "soon", 1);
        StartForever();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "IKET_SIM_MAX_SECONDS is 'soon'");
}

}  // namespace
}  // namespace iket::simdriver::testing
