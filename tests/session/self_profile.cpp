// SPDX-License-Identifier: Apache-2.0
//
// A C++17 program that profiles a part of itself with iket/iket_profiling_session.h. Builds with
// our header and library, and with NVIDIA's, whose names they are.
//
//   self_profile_cpp IMAGE KERNEL TRACE
//
// Launches the kernel once before the session, three times in it and once behind it; TRACE has
// three launches then.
#include <cuda.h>
#include <iket/iket_profiling_session.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>

using Options = iket::IketProfilingSessionOptions;
static_assert(sizeof(iket::IketProfilingSessionClusterIndex) == 8);
static_assert(offsetof(iket::IketProfilingSessionClusterIndex, x) == 0);
static_assert(offsetof(iket::IketProfilingSessionClusterIndex, y) == 4);
static_assert(offsetof(iket::IketProfilingSessionClusterIndex, z) == 6);
static_assert(std::is_standard_layout_v<Options> && sizeof(Options) == 56 && alignof(Options) == 8);
static_assert(offsetof(Options, struct_size) == 0);
static_assert(offsetof(Options, flags) == 4);
static_assert(offsetof(Options, max_ts_per_warp) == 8);
static_assert(offsetof(Options, device_buffer_size) == 16);
static_assert(offsetof(Options, profiled_cuda_contexts) == 24);
static_assert(offsetof(Options, num_profiled_cuda_contexts) == 32);
static_assert(offsetof(Options, enabled_cluster) == 40);
static_assert(offsetof(Options, log_level) == 48);
static_assert(std::is_pointer_v<iket::IketProfilingSessionHandle>);
static_assert(std::is_same_v<iket::IketProfilingSessionResult, std::uint32_t>);

namespace {

void Check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(call) + " fails");
}
#define CHECK(call) Check(call, #call)

class Session {
 public:
  Session() { Expect(iket::IketProfilingSessionCreate(&handle_), "create"); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { iket::IketProfilingSessionDestroy(handle_); }

  void SetOptions(const Options& options) {
    Expect(iket::IketProfilingSessionSetOptions(handle_, &options), "options");
  }
  void Start() { Expect(iket::IketProfilingSessionStart(handle_), "start"); }
  void Stop() { Expect(iket::IketProfilingSessionStop(handle_), "stop"); }
  void Save(const char* path) {
    Expect(iket::IketProfilingSessionSaveTrace(handle_, path), "save");
  }

 private:
  static void Expect(iket::IketProfilingSessionResult code, const char* call) {
    if (code == IKET_PROFILING_SESSION_SUCCESS) return;
    throw std::runtime_error(std::string(call) + ": " + std::to_string(code));
  }

  iket::IketProfilingSessionHandle handle_ = nullptr;
};

void Run(const char* image_path, const char* name, const char* trace) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr memory = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemAlloc(&memory, 4096));
  std::ifstream file(image_path, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  CHECK(cuModuleLoadData(&module, image.c_str()));
  CHECK(cuModuleGetFunction(&kernel, module, name));
  const auto launch = [&] {
    int five = 5;
    void* arguments[] = {&memory, &five};
    CHECK(cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  };

  launch();
  Session session;
  Options options{};
  options.struct_size = sizeof options;
  iket::IketProfilingSessionOptionsInit(&options);
  const void* contexts[] = {context};
  options.profiled_cuda_contexts = contexts;
  options.num_profiled_cuda_contexts = 1;
  session.SetOptions(options);
  session.Start();
  for (int i = 0; i < 3; ++i) launch();
  session.Stop();
  launch();
  session.Save(trace);
  CHECK(cuCtxSynchronize());
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return std::fprintf(stderr, "usage: self_profile_cpp IMAGE KERNEL TRACE\n"), 2;
  try {
    Run(words[1], words[2], words[3]);
    return std::puts("done, ok") < 0;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
