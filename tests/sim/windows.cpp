// SPDX-License-Identifier: Apache-2.0
//
// A program that says what of it is to be recorded, by iket/session.h and by NVTX: it does, one
// after the other, what its words say.
//
//   windows IMAGE WORD...
//
//   load launch many sync       the image, a launch of its kernel Work (four warps) or Many, a wait
//   reset                       the context ends; load makes another
//   start stop window,WORD,...  of the session; in `window` the words between commas
//   mark=TEXT snapshot flush attached
//   push=NAME pop begin=NAME end            NVTX ranges
//   push-wide=NAME push-registered=NAME push-plain=NAME begin-wide=NAME
//   domain=NAME in-push=NAME in-pop in-begin=NAME in-end    the same in the domain of that name
//   thread,WORD,...             the words in another thread
//
// `snapshot`, `flush` and `attached` print their answers. Without `load`, CUDA is not touched.
// Built with the real NVTX where the toolkit has it, and always with a small stand-in
// (nvtx_stub.h).
#include <cuda.h>
#include <iket/session.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "../good.h"

#ifdef WINDOWS_REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_stub.h"
#endif

namespace {

CUfunction g_work = nullptr, g_many = nullptr;
CUcontext g_context = nullptr;  // none: nothing is loaded
CUdeviceptr g_memory = 0;
nvtxDomainHandle_t g_domain = nullptr;
nvtxRangeId_t g_range = 0;

bool Load(const char* image) {
  CUdevice device = 0;
  CUmodule module = nullptr;
  return GOOD(cuInit(0)) && GOOD(cuDeviceGet(&device, 0)) &&
         GOOD(cuDevicePrimaryCtxRetain(&g_context, device)) && GOOD(cuCtxSetCurrent(g_context)) &&
         GOOD(cuMemAlloc(&g_memory, 4096)) && GOOD(cuModuleLoad(&module, image)) &&
         GOOD(cuModuleGetFunction(&g_work, module, "Work")) &&
         GOOD(cuModuleGetFunction(&g_many, module, "Many"));
}

bool Launch(CUfunction function) {
  void* arguments[] = {&g_memory};
  return GOOD(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
}

nvtxEventAttributes_t Named(const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  return attributes;
}
nvtxEventAttributes_t Registered(const char* name) {
  nvtxEventAttributes_t attributes = Named(nullptr);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(g_domain, name);
  return attributes;
}
std::wstring Wide(const std::string& utf8) {
  std::wstring wide;
  for (size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[i++]);
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    unsigned point = more == 0 ? first : first & (0x3f >> more);
    for (int k = 0; k < more; ++k)
      point = point << 6 | (static_cast<unsigned char>(utf8[i++]) & 63);
    wide.push_back(static_cast<wchar_t>(point));
  }
  return wide;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool Do(const char* image, const std::string& word);
bool DoAll(const char* image, const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!Do(image, words[i])) return false;
  }
  return true;
}

bool DoRange(const std::string& what, const char* name) {
  nvtxEventAttributes_t attributes = Named(name);
  if (what == "push") return nvtxRangePushEx(&attributes), true;
  if (what == "push-plain") return nvtxRangePushA(name), true;
  if (what == "push-wide") return nvtxRangePushW(Wide(name).c_str()), true;
  if (what == "begin") return g_range = nvtxRangeStartEx(&attributes), true;
  if (what == "begin-wide") return g_range = nvtxRangeStartW(Wide(name).c_str()), true;
  if (what == "domain") return g_domain = nvtxDomainCreateA(name), true;
  if (what == "in-push") return nvtxDomainRangePushEx(g_domain, &attributes), true;
  if (what == "in-begin") return g_range = nvtxDomainRangeStartEx(g_domain, &attributes), true;
  if (what == "push-registered") {
    attributes = Registered(name);
    return nvtxDomainRangePushEx(g_domain, &attributes), true;
  }
  return false;
}

bool Do(const char* image, const std::string& word) {
  namespace session = iket::session;
  if (word == "load") return Load(image);
  if (word == "launch") return Launch(g_work);
  if (word == "many") return Launch(g_many);
  if (word == "sync") return GOOD(cuCtxSynchronize());
  if (word == "reset") return GOOD(cuDevicePrimaryCtxReset(0));
  if (word == "start") return session::start(), true;
  if (word == "stop") return session::stop(), true;
  if (word == "pop") return nvtxRangePop(), true;
  if (word == "end") return nvtxRangeEnd(g_range), true;
  if (word == "in-pop") return nvtxDomainRangePop(g_domain), true;
  if (word == "in-end") return nvtxDomainRangeEnd(g_domain, g_range), true;
  if (word == "attached") return std::printf("attached %d\n", session::attached()) > 0;
  if (word == "flush") return std::printf("flushed %d\n", session::flush()) > 0;
  if (word == "snapshot") return std::printf("snapshot %s\n", session::snapshot().c_str()) > 0;
  const auto is = [&word](const char* begin) { return word.rfind(begin, 0) == 0; };
  if (is("mark=")) return session::mark(word.substr(5)), true;
  if (is("window,")) {
    const session::window window;
    return DoAll(image, Split(word));
  }
  if (is("thread,")) {
    bool good = false;
    std::thread([&] {
      good =
          (g_context == nullptr || GOOD(cuCtxSetCurrent(g_context))) && DoAll(image, Split(word));
    }).join();
    return good;
  }
  const size_t name = word.find('=');
  if (name != std::string::npos && DoRange(word.substr(0, name), word.c_str() + name + 1)) {
    return true;
  }
  std::printf("what is '%s'?\n", word.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 2; i < argc; ++i) {
    if (!Do(argv[1], argv[i])) return 1;
  }
  if (g_context != nullptr && !GOOD(cuCtxSynchronize())) return 1;
  std::printf("done, ok\n");
  return 0;
}
