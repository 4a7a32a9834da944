// What iket/embed.h calls, by name. The header says what each means. The functions of the driver
// that it hands out are the hooks themselves.
#include "inject/embed.h"

#include <dlfcn.h>
#include <iket/embed.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "inject/beside.h"
#include "inject/contexts.h"
#include "inject/driver.h"
#include "inject/guest.h"
#include "inject/hooks.h"
#include "inject/images.h"
#include "inject/launches.h"
#include "inject/settings.h"
#include "ring/layout.h"
#include "session/message.h"
#include "session/selection.h"

#define IKET_EXPORT extern "C" __attribute__((visibility("default")))

struct iket_embed_image {
  std::shared_ptr<iket::inject::PatchedImage> patched;
};

namespace iket::inject {
namespace {

constexpr char kNoMemory[] = "out of memory";

// A text that stays until the thread's next one.
const char* Keep(std::string_view text) noexcept {
  thread_local char kept[1024];
  const size_t bytes = std::min(text.size(), sizeof kept - 1);
  std::memcpy(kept, text.data(), bytes);
  kept[bytes] = 0;
  return kept;
}

// The library was preloaded: the program's own calls come here, too.
bool IsInFront() noexcept {
  constexpr char kAny[] = "cuModuleLoadData";
  return FindInProgram(kAny) == HookByExport(kAny);
}

Result<void> Take(const iket_embed_options& options) {
  if (options.size < sizeof options) {
    return Fail(ErrorKind::kUsage, "iket_embed_options::size is not the size of the options");
  }
  if (options.selection != nullptr) {
    const auto selection = session::DecodeSelection(options.selection);
    if (!selection) return tl::unexpected(selection.error());
    if (!selection->nvtx.empty()) {
      return Fail(ErrorKind::kUsage, "windows of NVTX need iket profile --nvtx");
    }
    if (auto made = session::KernelChooser::Make(*selection); !made) {
      return tl::unexpected(made.error());
    }
    SetSetting(session::kEnvSelection, options.selection);
  }
  if (options.folder != nullptr) {
    mkdir(options.folder, 0777);
    char* const folder = realpath(options.folder, nullptr);
    if (folder == nullptr || access(folder, W_OK | X_OK) != 0) {
      const int error = errno;
      std::free(folder);
      return Fail(ErrorKind::kSystem, "{}: no folder to write to: {}", options.folder,
                  std::strerror(error));
    }
    SetSetting(session::kEnvOutput, folder);
    std::free(folder);
  }
  if (options.ring_bytes != 0) {
    if (auto layout = ring::MakeLayout(options.ring_bytes, 1); !layout) {
      return tl::unexpected(layout.error());
    }
    SetSetting(session::kEnvRingBytes, std::to_string(options.ring_bytes));
  }
  if (options.memory_bytes != 0) {
    SetSetting(session::kEnvMemoryBytes, std::to_string(options.memory_bytes));
  }
  SetSetting(session::kEnvFlight, options.flight != 0 ? "1" : "");
  return {};
}

Result<void> Open(const iket_embed_options* options) {
  static std::mutex mutex;
  static bool is_open = false;
  const std::lock_guard lock(mutex);
  if (is_open || IsInFront()) return {};
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    return Fail(ErrorKind::kSystem, "no NVIDIA driver: {}", dlerror());
  }
  SetSetting(session::kEnvSocket, "");
  SetSetting(session::kEnvOutput, kTemporaryFolder);
  if (options != nullptr) {
    if (auto taken = Take(*options); !taken) return taken;
  }
  is_open = true;
  LookHandlesUp();
  return {};
}

}  // namespace

Result<std::string> WriteHere(const std::string& path, bool wait) {
  Guest* const guest = Guest::Existing();
  if (guest == nullptr) {
    return Fail(ErrorKind::kUsage, "{}: nothing to write: no code with marks has been loaded",
                path);
  }
  Beside beside(path);
  if (auto ready = beside.Ready(); !ready) return tl::unexpected(ready.error());
  const std::string file = beside.File("iketcap");
  Result<void> read;
  auto written = guest->WriteSnapshot(file, [&](capture::Writer& writer) {
    Result<void> appended;
    read = ReadAllRings({.wait = wait}, [&](const auto& moment, auto rings) {
      auto one = writer.Append(moment, rings);
      if (!one && appended) appended = std::move(one);
    });
    return appended;
  });
  if (!written) return tl::unexpected(written.error());
  if (!read) {
    return Fail(ErrorKind::kSystem, "{}: rings cannot be read: {}", path, read.error().message);
  }
  if (!written->incomplete.empty()) {
    return Fail(ErrorKind::kSystem, "{}: not written: {}", path, written->incomplete);
  }
  if (guest->chunks_lost() != 0) {
    return Fail(ErrorKind::kSystem,
                "{}: not written: some of what was recorded is lost, its file could not grow "
                "(a full disk?)",
                path);
  }
  if (auto placed = beside.Place(file); !placed) return tl::unexpected(placed.error());
  return path;
}

}  // namespace iket::inject

using namespace iket::inject;  // NOLINT: the functions below are C functions of the global
                               // namespace

IKET_EXPORT const char* iket_embed1_open(const iket_embed_options* options) noexcept {
  try {
    const auto opened = Open(options);
    return opened ? nullptr : Keep(opened.error().message);
  } catch (...) {
    return kNoMemory;
  }
}

IKET_EXPORT void* iket_embed1_function(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  void* const real = FindReal(name);
  void* const hook = real != nullptr ? HookByExport(name) : nullptr;
  return hook != nullptr ? hook : real;
}

IKET_EXPORT const char* iket_embed1_write(const char* path) noexcept {
  if (path == nullptr || *path == 0) return "no path";
  try {
    const auto written = WriteHere(path, true);
    return written ? nullptr : Keep(written.error().message);
  } catch (...) {
    return kNoMemory;
  }
}

IKET_EXPORT iket_embed_image* iket_embed1_patch(const void* image) noexcept {
  if (image == nullptr || IsInFront()) return nullptr;
  auto patched = Prepare(image, {.call = "iket_embed_patch"});
  return patched != nullptr ? new (std::nothrow) iket_embed_image{std::move(patched)} : nullptr;
}

IKET_EXPORT const void* iket_embed1_image_data(const iket_embed_image* image,
                                               size_t* bytes) noexcept {
  if (bytes != nullptr) *bytes = image != nullptr ? image->patched->bytes.size() : 0;
  return image != nullptr ? image->patched->bytes.data() : nullptr;
}

IKET_EXPORT const char* iket_embed1_bind(iket_embed_image* image, CUmodule module) noexcept {
  if (image == nullptr) return nullptr;  // the original needs nothing
  if (module == nullptr) return "no module";
  return AddModule(module, image->patched)
             ? nullptr
             : "the module cannot be made ready: is the context that it was loaded into current?";
}

IKET_EXPORT void iket_embed1_unbind(CUmodule module) noexcept { RemoveModule(module); }

IKET_EXPORT void iket_embed1_release(iket_embed_image* image) noexcept { delete image; }

IKET_EXPORT CUresult iket_embed1_launching(CUfunction kernel,
                                           const CUlaunchConfig* config) noexcept {
  if (IsInFront()) return CUDA_SUCCESS;
  return BeforeLaunch(kernel, ShapeOf(config)).result;
}
