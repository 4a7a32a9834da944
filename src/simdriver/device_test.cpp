#include <cstring>
#include <thread>

#include "simdriver/testing.h"

namespace iket::simdriver::testing {
namespace {

TEST(Device, IsThereOnce) {
  ASSERT_CU(CU(cuInit)(0));
  int count = 0;
  ASSERT_CU(CU(cuDeviceGetCount)(&count));
  EXPECT_EQ(count, 1);
  CUdevice device = 0;
  EXPECT_CU(CUDA_SUCCESS, CU(cuDeviceGet)(&device, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&device, 1));
  char name[64];
  ASSERT_CU(CU(cuDeviceGetName)(name, sizeof name, 0));
  EXPECT_NE(std::string(name).find("software device"), std::string::npos);
  char cut[5];
  ASSERT_CU(CU(cuDeviceGetName)(cut, sizeof cut, 0));
  EXPECT_EQ(std::string(name).substr(0, 4), cut);
}

TEST(Device, HasSm90AndEveryAttributeOfTheHeader) {
  ASSERT_CU(CU(cuInit)(0));
  int major = 0;
  int minor = -1;
  ASSERT_CU(CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  ASSERT_CU(CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  EXPECT_EQ(major, 9);
  EXPECT_EQ(minor, 0);
  int value = 0;
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    EXPECT_CU(CUDA_SUCCESS,
              CU(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(i), 0));
  }
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
}

TEST(Errors, HaveNamesAndTexts) {
  const char* text = nullptr;
  ASSERT_CU(CU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_CU(CU(cuGetErrorString)(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "an illegal memory access was encountered");
  // Each error of the header that has a name has words that are not the name.
  for (int i = 0; i < 2000; ++i) {
    const auto error = static_cast<CUresult>(i);
    const char* name = nullptr;
    const CUresult named = CU(cuGetErrorName)(error, &name);
    const CUresult described = CU(cuGetErrorString)(error, &text);
    EXPECT_EQ(named, described) << i;
    if (named == CUDA_SUCCESS) {
      EXPECT_STRNE(name, text);
    }
  }
}

TEST(ProcAddress, AnswersByVersionAndStream) {
  ASSERT_CU(CU(cuInit)(0));
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  const auto ask = [&](const char* name, int version, cuuint64_t flags) {
    return CU(cuGetProcAddress)(name, &function, version, flags, &status);
  };
  EXPECT_CU(CUDA_SUCCESS, ask("cuMemAlloc", 13000, 0));
  EXPECT_EQ(function, Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_CU(CUDA_SUCCESS, ask("cuCtxCreate", 11040, 0));
  EXPECT_EQ(function, Symbol("cuCtxCreate_v3"));
  EXPECT_CU(CUDA_SUCCESS, ask("cuCtxCreate", 12049, 0));
  EXPECT_EQ(function, Symbol("cuCtxCreate_v3"));
  EXPECT_CU(CUDA_SUCCESS, ask("cuLaunchKernel", 13000, 0));
  EXPECT_EQ(function, Symbol("cuLaunchKernel"));
  const cuuint64_t twin = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_CU(CUDA_SUCCESS, ask("cuLaunchKernel", 13000, twin));
  EXPECT_EQ(function, Symbol("cuLaunchKernel_ptsz"));
  // Functions without a stream have no twin.
  EXPECT_CU(CUDA_SUCCESS, ask("cuMemAlloc", 13000, twin));
  EXPECT_EQ(function, Symbol("cuMemAlloc_v2"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, ask("cuLibraryLoadData", 11080, 0));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, ask("cuNoSuchThing", 13000, 0));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST(Unsupported, IsNamedOnce) {
  ASSERT_CU(CU(cuInit)(0));
  ::testing::internal::CaptureStderr();
  CUtexObject texture{};
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, CU(cuTexObjectCreate)(&texture, nullptr, nullptr, nullptr));
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, CU(cuTexObjectCreate)(&texture, nullptr, nullptr, nullptr));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "iket-sim: cuTexObjectCreate: not part of the software device; it returns "
            "CUDA_ERROR_NOT_SUPPORTED\n");
}

TEST(RuntimePrograms, AreToldWhatWorks) {
  ::testing::internal::CaptureStderr();
  const void* table = nullptr;
  // NVRTC asks for one as well, and its programs work: no word to them.
  const unsigned char nvrtc[16] = {0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41,
                                   0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28};
  CUuuid id{};
  std::memcpy(id.bytes, nvrtc, sizeof nvrtc);
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuGetExportTable)(&table, &id));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  id.bytes[0] = 0;
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuGetExportTable)(&table, &id));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("<<<>>>"), std::string::npos) << said;
  EXPECT_NE(said.find("NVRTC"), std::string::npos) << said;
}

TEST(Context, StackBelongsToItsThread) {
  ASSERT_CU(CU(cuInit)(0));
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext current = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&first, nullptr, 0, 0));
  ASSERT_CU(CU(cuCtxCreate)(&second, nullptr, 0, 0));
  ASSERT_CU(CU(cuCtxGetCurrent)(&current));
  EXPECT_EQ(current, second);
  std::thread([&] {
    CUcontext there = first;
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxGetCurrent)(&there));
    EXPECT_EQ(there, nullptr);
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSynchronize)());
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSetCurrent)(first));
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
  }).join();
  ASSERT_CU(CU(cuCtxPopCurrent)(&current));
  EXPECT_EQ(current, second);
  ASSERT_CU(CU(cuCtxGetCurrent)(&current));
  EXPECT_EQ(current, first);
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxDestroy)(second));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxDestroy)(first));
  ASSERT_CU(CU(cuCtxGetCurrent)(&current));
  EXPECT_EQ(current, nullptr);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxPushCurrent)(first));
}

TEST(PrimaryContext, LivesAsLongAsItIsRetained) {
  ASSERT_CU(CU(cuInit)(0));
  CUcontext one = nullptr;
  CUcontext two = nullptr;
  ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&one, 0));
  ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&two, 0));
  EXPECT_EQ(one, two);
  unsigned flags = 0;
  int active = 0;
  ASSERT_CU(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxDestroy)(one));
  ASSERT_CU(CU(cuCtxSetCurrent)(one));
  ASSERT_CU(CU(cuDevicePrimaryCtxRelease)(0));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuDevicePrimaryCtxRelease)(0));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuDevicePrimaryCtxRelease)(0));
  ASSERT_CU(CU(cuCtxSetCurrent)(nullptr));
}

}  // namespace
}  // namespace iket::simdriver::testing
