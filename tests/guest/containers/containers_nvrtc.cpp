// SPDX-License-Identifier: Apache-2.0
//
// Compiles the kernel Work in the process with NVRTC, as frameworks do, and prints what it
// computed:
//
//   containers_nvrtc ptx | cubin
//
// Ends with 77 where there is no NVRTC 12.5 or later.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../../good.h"
#include "expected.h"

// The source, and the header that it includes, as they are in the tree.
asm(".pushsection .rodata\n"
    "kWorkSource:\n\t.incbin \"" CONTAINER_SOURCE
    "\"\n\t.byte 0\n"
    "kIketHeader:\n\t.incbin \"" CONTAINER_HEADER "\"\n\t.byte 0\n\t.popsection");
extern "C" const char kWorkSource[];
extern "C" const char kIketHeader[];

namespace {

// NVRTC's functions that are used, by their C signatures; nvrtc.h need not be there.
using Program = struct NvrtcProgram*;
struct Nvrtc {
  int (*Version)(int*, int*);
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*);
  int (*CompileProgram)(Program, int, const char* const*);
  int (*GetPTXSize)(Program, size_t*);
  int (*GetPTX)(Program, char*);
  int (*GetCUBINSize)(Program, size_t*);
  int (*GetCUBIN)(Program, char*);
};

bool Load(Nvrtc* nvrtc) {
  for (const char* name :
       {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
    void* library = dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    const auto find = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    int major = 0, minor = 0;
    if (find(nvrtc->Version, "nvrtcVersion") && nvrtc->Version(&major, &minor) == 0 &&
        major * 100 + minor >= 1205 && find(nvrtc->CreateProgram, "nvrtcCreateProgram") &&
        find(nvrtc->CompileProgram, "nvrtcCompileProgram") &&
        find(nvrtc->GetPTXSize, "nvrtcGetPTXSize") && find(nvrtc->GetPTX, "nvrtcGetPTX") &&
        find(nvrtc->GetCUBINSize, "nvrtcGetCUBINSize") && find(nvrtc->GetCUBIN, "nvrtcGetCUBIN")) {
      return true;
    }
  }
  return false;
}

// Empty if something failed.
std::string Compile(const Nvrtc& nvrtc, bool ptx) {
  Program program = nullptr;
  const char* const headers[] = {kIketHeader};
  const char* const names[] = {"iket/iket.cuh"};
  const char* const options[] = {ptx ? "--gpu-architecture=compute_90" : "--gpu-architecture=sm_90",
                                 "--std=c++20", "-DIKET_ENABLE"};
  size_t size = 0;
  if (nvrtc.CreateProgram(&program, kWorkSource, "work.cu", 1, headers, names) != 0 ||
      nvrtc.CompileProgram(program, 3, options) != 0 ||
      (ptx ? nvrtc.GetPTXSize(program, &size) : nvrtc.GetCUBINSize(program, &size)) != 0) {
    return {};
  }
  std::string code(size, 0);
  if ((ptx ? nvrtc.GetPTX(program, code.data()) : nvrtc.GetCUBIN(program, code.data())) != 0) {
    return {};
  }
  return code;
}

bool Run(const std::string& code) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr out = 0;
  std::vector<unsigned> values(256);
  const size_t bytes = values.size() * sizeof(unsigned);
  void* arguments[] = {&out};
  if (!GOOD(cuInit(0)) || !GOOD(cuDevicePrimaryCtxRetain(&context, 0)) ||
      !GOOD(cuCtxSetCurrent(context)) ||
      !GOOD(cuModuleLoadDataEx(&module, code.data(), 0, nullptr, nullptr)) ||
      !GOOD(cuModuleGetFunction(&function, module, "Work")) || !GOOD(cuMemAlloc(&out, bytes)) ||
      !GOOD(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr)) ||
      !GOOD(cuMemcpyDtoH(values.data(), out, bytes))) {
    return false;
  }
  return SayValues(values);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Nvrtc nvrtc{};
  if (!Load(&nvrtc)) {
    std::printf("no NVRTC 12.5 or later\n");
    return 77;
  }
  const std::string code = Compile(nvrtc, std::strcmp(argv[1], "ptx") == 0);
  if (code.empty()) {
    std::printf("NVRTC does not compile the kernel\n");
    return 1;
  }
  return Run(code) ? 0 : 1;
}
