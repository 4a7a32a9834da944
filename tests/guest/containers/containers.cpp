// SPDX-License-Identifier: Apache-2.0
//
// Gives code to the driver in every way that there is, runs the kernel Work of it, and prints what
// it computed, or which call failed with which error, and then ends with 1.
//
//   containers WAY FILE [FILE...]
//
//   module         cuModuleLoad                       library        cuLibraryLoadData
//   data           cuModuleLoadData                   library-first  before there is a context
//   data-ex        cuModuleLoadDataEx with options    library-file   cuLibraryLoadFromFile
//   data-log       the same, and prints the logs      wrapper        cuLibraryLoadData of a wrapper
//   fat-binary     cuModuleLoadFatBinary              linked         of a wrapper of version 2; the
//                                                                    other files are its objects
//   embedded       a wrapper around the fatbin that this program was built with, in its own data
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../good.h"
#include "expected.h"

// As nvcc embeds code. CONTAINER_NOTE is what iket.cuh adds where marks are compiled.
asm(".pushsection .nv_fatbin,\"a\"\n\t.balign 8\n"
    "kEmbeddedFatbin:\n\t.incbin \"" CONTAINER_EMBEDDED "\"\n\t.balign 8\n\t.popsection");
extern "C" const char kEmbeddedFatbin[];
#ifdef CONTAINER_LARGE
// More than what is looked into without a note: inject/host_object.h.
extern "C" {
char container_large[17 << 20];
}
#endif
#ifdef CONTAINER_NOTE
asm(".pushsection .note.iket,\"a\",@note\n\t"
    ".balign 4\n\t.long 5, 4, 1\n\t.asciz \"iket\"\n\t.balign 4\n\t.long 1\n\t.popsection");
#endif

namespace {

struct Wrapper {
  uint32_t magic = 0x466243b1, version = 1;
  const void* fatbin = nullptr;
  const void* extra = nullptr;
};
Wrapper g_embedded{.fatbin = kEmbeddedFatbin};

// Ends with a NUL, as PTX must.
std::string Contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool UseDevice() {
  CUcontext context = nullptr;
  return GOOD(cuDevicePrimaryCtxRetain(&context, 0)) && GOOD(cuCtxSetCurrent(context));
}

void* Number(uintptr_t value) { return reinterpret_cast<void*>(value); }  // NOLINT: as cuda.h asks

// With options, as programs that compile PTX have them.
bool LoadWithOptions(CUmodule* module, const void* image, bool print) {
  char info[512] = "", error[512] = "";
  CUjit_option options[] = {CU_JIT_MAX_REGISTERS,
                            CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE};
  void* values[] = {Number(32), info, Number(sizeof info), error, Number(sizeof error), Number(1)};
  const CUresult result = cuModuleLoadDataEx(module, image, 6, options, values);
  if (print) {
    std::printf("info %zu '%s', error %zu '%s'\n", reinterpret_cast<uintptr_t>(values[2]), info,
                reinterpret_cast<uintptr_t>(values[4]), error);
  }
  return Good(result, "cuModuleLoadDataEx");
}

bool LoadLibrary(CUfunction* function, const void* image) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (!GOOD(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0)) ||
      !GOOD(cuLibraryGetKernel(&kernel, library, "Work"))) {
    return false;
  }
  *function = reinterpret_cast<CUfunction>(kernel);
  return true;
}

bool LoadLibraryFile(CUfunction* function, const char* path) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (!GOOD(cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0)) ||
      !GOOD(cuLibraryGetKernel(&kernel, library, "Work"))) {
    return false;
  }
  *function = reinterpret_cast<CUfunction>(kernel);
  return true;
}

bool LoadModule(CUfunction* function, const std::string& way, const char* path, const void* image) {
  CUmodule module = nullptr;
  const bool loaded = way == "module"       ? GOOD(cuModuleLoad(&module, path))
                      : way == "fat-binary" ? GOOD(cuModuleLoadFatBinary(&module, image))
                      : way == "data"       ? GOOD(cuModuleLoadData(&module, image))
                                            : LoadWithOptions(&module, image, way == "data-log");
  return loaded && GOOD(cuModuleGetFunction(function, module, "Work"));
}

bool Run(CUfunction function) {
  std::vector<unsigned> values(256);
  CUdeviceptr out = 0;
  const size_t bytes = values.size() * sizeof(unsigned);
  if (!GOOD(cuMemAlloc(&out, bytes))) return false;
  void* arguments[] = {&out};
  if (!GOOD(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr)) ||
      !GOOD(cuMemcpyDtoH(values.data(), out, bytes))) {
    return false;
  }
  return SayValues(values);
}

bool LoadAndRun(const std::string& way, const char* path, const std::vector<std::string>& images) {
  const void* const first = images.empty() ? nullptr : images[0].data();
  std::vector<const void*> objects;
  for (size_t i = 1; i < images.size(); ++i) objects.push_back(images[i].data());
  objects.push_back(nullptr);
  CUfunction function = nullptr;
  if (!GOOD(cuInit(0)) || (way != "library-first" && !UseDevice())) return false;
  bool loaded = false;
  Wrapper wrapper{.fatbin = first};
  if (way == "embedded") {
    loaded = LoadLibrary(&function, &g_embedded);
  } else if (way == "library" || way == "library-first") {
    loaded = LoadLibrary(&function, first);
  } else if (way == "library-file") {
    loaded = LoadLibraryFile(&function, path);
  } else if (way == "wrapper" || way == "linked") {
    if (way == "linked")
      wrapper = {.version = 2, .fatbin = first, .extra = static_cast<const void*>(objects.data())};
    loaded = LoadLibrary(&function, &wrapper);
  } else {
    loaded = LoadModule(&function, way, path, first);
  }
  return loaded && (way != "library-first" || UseDevice()) && Run(function);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (argc < 3 && way != "embedded") return 2;
  std::vector<std::string> images;
  for (int i = 2; i < argc; ++i) images.push_back(Contents(argv[i]));
  return LoadAndRun(way, argc > 2 ? argv[2] : nullptr, images) ? 0 : 1;
}
