// testing.h: the built library as a program sees it, opened by its path, so that a machine with a
// GPU tests this driver and not NVIDIA's.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace iket::simdriver::testing {

inline void* Symbol(const char* name) {
  static void* library = [] {
    void* opened = dlopen(IKET_SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return opened;
  }();
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "%s: no %s\n", IKET_SIM_LIBRARY, name);
    std::abort();
  }
  return symbol;
}

// CU(cuMemAlloc)(&pointer, bytes): the function of the library, under the name that cuda.h gives
// it.
#define IKET_CU_EXPANDED(name) \
  (reinterpret_cast<decltype(&::name)>(::iket::simdriver::testing::Symbol(#name)))
#define CU(name) IKET_CU_EXPANDED(name)

inline std::string NameOf(CUresult result) {
  const char* name = nullptr;
  return CU(cuGetErrorName)(result, &name) == CUDA_SUCCESS ? name : "an unknown error";
}

#define EXPECT_CU(expected, call)                                                         \
  do {                                                                                    \
    const CUresult got = (call);                                                          \
    EXPECT_EQ(got, expected) << #call << ": " << ::iket::simdriver::testing::NameOf(got); \
  } while (false)
#define ASSERT_CU(call)                                                                       \
  do {                                                                                        \
    const CUresult got = (call);                                                              \
    ASSERT_EQ(got, CUDA_SUCCESS) << #call << ": " << ::iket::simdriver::testing::NameOf(got); \
  } while (false)

// The device with a context of its own for each test, so that a failed one spoils no other.
class WithContext : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(CU(cuInit)(0));
    ASSERT_CU(CU(cuDeviceGet)(&device, 0));
    ASSERT_CU(CU(cuCtxCreate)(&context, nullptr, 0, device));
  }
  void TearDown() override { EXPECT_CU(CUDA_SUCCESS, CU(cuCtxDestroy)(context)); }

  CUdevice device = 0;
  CUcontext context = nullptr;
};

inline std::vector<char> ReadFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr) return {};
  std::vector<char> bytes;
  for (int c; (c = std::fgetc(file)) != EOF;) bytes.push_back(static_cast<char>(c));
  std::fclose(file);
  return bytes;
}

// What the build made of testing_kernels.cu: "testing_kernels.sm_90.cubin" and others.
inline std::string KernelFile(const std::string& name) {
  return std::string(IKET_SIM_KERNELS) + "/" + name;
}

// With the module of testing_kernels.cu loaded.
class WithModule : public WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    image = ReadFile(KernelFile("testing_kernels.sm_90.cubin"));
    ASSERT_CU(CU(cuModuleLoadData)(&module, image.data()));
  }
  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_CU(CUDA_SUCCESS, CU(cuModuleGetFunction)(&function, module, name));
    return function;
  }
  // One CTA of `threads` threads.
  CUresult Launch(const char* name, unsigned threads, std::vector<void*> params,
                  CUstream stream = nullptr) {
    return CU(cuLaunchKernel)(Function(name), 1, 1, 1, threads, 1, 1, 0, stream, params.data(),
                              nullptr);
  }

  std::vector<char> image;
  CUmodule module = nullptr;
};

}  // namespace iket::simdriver::testing
