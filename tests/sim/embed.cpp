// SPDX-License-Identifier: Apache-2.0
//
// A program that traces itself with iket/embed.h: it does, one after the other, what its words say.
//
//   embed LIBRARY IMAGE WORD...
//
//   open open=FOLDER selection=TEXT    the collector; the second with a folder for its files, the
//                                      third with a selection, whose lines stand between ';'
//   load launch many unload destroy    by the collector's functions: the image, a launch of its
//                                      kernel Work (four warps) or Many, the module's and the
//                                      context's end
//   look-up                            the kernels' handles, by the driver's own function
//   take say                           by the driver's own: the patched image is loaded and bound;
//                                      its next launch is announced
//   original                           by the driver's own, the image as it is
//   context                            one, without code
//   later                              a launch when the program ends, behind whatever exit
//   handlers
//                                      are registered from now on
//   sync start stop mark=TEXT flush snapshot attached    iket/session.h and the driver
//   write=PATH                         the capture
//
// What `write`, `snapshot`, `flush`, `attached` and `take` find is printed.
#include <cuda.h>
#include <iket/embed.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "../good.h"

namespace {

CUcontext g_context = nullptr;
CUmodule g_module = nullptr;
CUfunction g_work = nullptr, g_many = nullptr;
CUdeviceptr g_memory = 0;
iket_embed_image* g_image = nullptr;
bool g_by_driver = false, g_announced = false;

std::string Read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Open(const char* library, const char* folder, const char* selection) {
  iket_embed_options options{};
  options.size = sizeof options;
  options.library = library;
  options.folder = folder;
  options.selection = selection;
  const char* const why = iket_embed_open(&options);
  std::printf("open %s\n", why != nullptr ? why : "ok");
  return true;
}

bool MakeContext() {
  CUdevice device = 0;
  if (g_context != nullptr) return true;
  return GOOD(cuInit(0)) && GOOD(cuDeviceGet(&device, 0)) &&
         GOOD(cuDevicePrimaryCtxRetain(&g_context, device)) && GOOD(cuCtxSetCurrent(g_context)) &&
         GOOD(cuMemAlloc(&g_memory, 4096));
}

bool Load(const char* path) {
  const std::string image = Read(path);
  g_by_driver = false;
  return MakeContext() && GOOD(IKET_EMBED(cuModuleLoadData)(&g_module, image.data())) &&
         GOOD(IKET_EMBED(cuModuleGetFunction)(&g_work, g_module, "Work")) &&
         GOOD(IKET_EMBED(cuModuleGetFunction)(&g_many, g_module, "Many"));
}

bool Take(const char* path, bool original) {
  const std::string image = Read(path);
  g_by_driver = true;
  if (!MakeContext()) return false;
  g_image = original ? nullptr : iket_embed_patch(image.data());
  size_t bytes = 0;
  const void* const patched = iket_embed_image_data(g_image, &bytes);
  std::printf("%s\n", g_image == nullptr ? "original" : bytes > 0 ? "patched" : "empty");
  if (!GOOD(cuModuleLoadData(&g_module, g_image != nullptr ? patched : image.data()))) return false;
  if (const char* const why = iket_embed_bind(g_image, g_module)) {
    return std::printf("not bound: %s\n", why) < 0;
  }
  iket_embed_release(g_image);
  return GOOD(cuModuleGetFunction(&g_work, g_module, "Work")) &&
         GOOD(cuModuleGetFunction(&g_many, g_module, "Many"));
}

bool Launch(CUfunction function) {
  void* arguments[] = {&g_memory};
  if (!g_by_driver) {
    return GOOD(
        IKET_EMBED(cuLaunchKernel)(function, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  }
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.blockDimX = 64;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  if (g_announced && !GOOD(iket_embed_launching(function, &config))) return false;
  g_announced = false;
  return GOOD(cuLaunchKernelEx(&config, function, arguments, nullptr));
}

bool Unload() {
  if (!g_by_driver) return GOOD(IKET_EMBED(cuModuleUnload)(g_module));
  iket_embed_unbind(g_module);
  return GOOD(cuModuleUnload(g_module));
}

bool Do(const char* library, const char* image, const std::string& word) {
  namespace session = iket::session;
  const auto value = [&word](const char* begin) {
    const size_t length = std::char_traits<char>::length(begin);
    return word.compare(0, length, begin) == 0 ? word.c_str() + length : nullptr;
  };
  if (word == "open") return Open(library, nullptr, nullptr);
  if (const char* const folder = value("open=")) return Open(library, folder, nullptr);
  if (const char* const text = value("selection=")) return Open(library, nullptr, text);
  if (word == "load") return Load(image);
  if (word == "take") return Take(image, false);
  if (word == "original") return Take(image, true);
  if (word == "say") return g_announced = true;
  if (word == "launch") return Launch(g_work);
  if (word == "many") return Launch(g_many);
  if (word == "context") return MakeContext();
  if (word == "look-up") {
    return GOOD(cuModuleGetFunction(&g_work, g_module, "Work")) &&
           GOOD(cuModuleGetFunction(&g_many, g_module, "Many"));
  }
  if (word == "unload") return Unload();
  if (word == "later") {
    return std::atexit([] { static_cast<void>(Launch(g_work) && GOOD(cuCtxSynchronize())); }) == 0;
  }
  if (word == "destroy") {
    g_context = nullptr;
    return GOOD(IKET_EMBED(cuDevicePrimaryCtxReset)(0));
  }
  if (word == "sync") return GOOD(cuCtxSynchronize());
  if (word == "start") return session::start(), true;
  if (word == "stop") return session::stop(), true;
  if (const char* const text = value("mark=")) return session::mark(text), true;
  if (word == "attached") return std::printf("attached %d\n", session::attached()) > 0;
  if (word == "flush") return std::printf("flushed %d\n", session::flush()) > 0;
  if (word == "snapshot") return std::printf("snapshot %s\n", session::snapshot().c_str()) > 0;
  if (const char* const path = value("write=")) {
    const char* const why = iket_embed_write(path);
    return std::printf("write %s\n", why != nullptr ? why : "ok") > 0;
  }
  std::fprintf(stderr, "what is '%s'?\n", word.c_str());
  return false;
}

}  // namespace

int main(int count, char** words) {
  for (int i = 3; i < count; ++i) {
    if (!Do(words[1], words[2], words[i])) return 1;
    std::fflush(stdout);
  }
  if (g_context != nullptr && !GOOD(cuCtxSynchronize())) return 1;
  return std::printf("done, ok\n") > 0 ? 0 : 1;
}
