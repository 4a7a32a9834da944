#include "profiling_session/interception.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "inject/driver.h"
#include "inject/hooks.h"
#include "inject/launches.h"
#include "inject/say.h"
#include "profiling_session/import_slots.h"

namespace iket::profiling_session {
namespace {

constexpr char kAnyHook[] = "cuModuleLoadData";

constexpr char kTooLate[] =
    "CUDA was in use before this library was loaded: link the program with it, preload it "
    "(LD_PRELOAD), or open it before the first call of CUDA";

constexpr char kInjected[] =
    "CUDA_INJECTION64_PATH names this library, and the driver loads that when the CUDA runtime has "
    "its functions: link the program with it, or preload it (LD_PRELOAD)";

std::atomic<bool> g_in_front{false};
std::atomic<const char*> g_why_not{nullptr};

void* OurDlsym() noexcept {
  return reinterpret_cast<void*>(static_cast<void* (*)(void*, const char*)>(&::dlsym));
}

bool IsInFront() noexcept {
  return inject::FindInProgram("dlsym") == OurDlsym() &&
         inject::FindInProgram(kAnyHook) == inject::HookByExport(kAnyHook);
}

// True if it was opened by the running program: the dynamic linker's own place in the list of
// objects is behind all that a program is started with.
bool CameLater() noexcept {
  const uintptr_t linker = getauxval(AT_BASE);
  Dl_info self{};
  link_map* map = nullptr;
  if (linker == 0 ||
      dladdr1(OurDlsym(), &self, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    return false;
  }
  for (; map != nullptr; map = map->l_next) {
    if (map->l_addr == linker) return false;
  }
  return true;
}

bool CudaIsInUse() noexcept {
  const auto count =
      reinterpret_cast<decltype(&::cuDeviceGetCount)>(inject::FindReal("cuDeviceGetCount"));
  int devices = 0;
  return count != nullptr && count(&devices) != CUDA_ERROR_NOT_INITIALIZED;
}

// True if the driver loads this library. It is in the middle of its initialisation then, and must
// not be called.
bool IsInjected() noexcept {
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  const std::string_view file(path != nullptr ? path : "");
  return file.substr(file.rfind('/') + 1) == "libiket_injection.so";
}

// Objects whose own calls are none of the program's.
bool IsNobodysProgram(const char* path) noexcept {
  static const char* const kSelf = [] {
    Dl_info self{};
    return dladdr(OurDlsym(), &self) != 0 ? self.dli_fname : "";
  }();
  if (std::strcmp(path, kSelf) == 0) return true;
  const std::string_view file(path);
  const std::string_view name = file.substr(file.rfind('/') + 1);
  for (const std::string_view own : {"libcuda.so", "libc.so", "ld-linux", "linux-vdso"}) {
    if (name.starts_with(own)) return true;
  }
  return false;
}

size_t Rebind() {
  const auto real = inject::RealDlsym();
  if (real == nullptr) return 0;
  return RebindImports(IsNobodysProgram, [real](const Import& import) -> void* {
    void *hook = nullptr, *original = nullptr;
    if (std::strcmp(import.name, "dlsym") == 0) {
      hook = OurDlsym();
      original = reinterpret_cast<void*>(real);
    } else if (import.name[0] == 'c' && import.name[1] == 'u') {
      hook = inject::HookByExport(import.name);
      if (hook != nullptr) original = inject::FindReal(import.name);
    }
    if (original == nullptr) return nullptr;
    void* leads_to = import.bound ? import.value : inject::FindInProgram(import.name);
    // Of an object in a scope of its own, with the driver in it.
    if (leads_to == nullptr) leads_to = original;
    return leads_to == original ? hook : nullptr;
  });
}

}  // namespace

bool HasOtherCollector() noexcept {
  if (inject::FindInProgram("iket_session_attached") != nullptr) return true;
  void* const collector = dlopen("libiket_inject.so", RTLD_LAZY | RTLD_NOLOAD);
  if (collector != nullptr) dlclose(collector);
  return collector != nullptr;
}

void Intercept() noexcept {
  static std::atomic<bool> first{true};
  try {
    const bool is_first = first.exchange(false);
    if (HasOtherCollector()) return;
    if (!is_first && (g_in_front.load() || g_why_not.load() != nullptr)) return;
    if (IsInFront()) {
      g_in_front.store(true);
      return;
    }
    if (is_first && CameLater() && IsInjected()) {
      g_why_not.store(kInjected);
      return;
    }
    const bool in_use = (!is_first || CameLater()) && CudaIsInUse();
    if (is_first && in_use) {
      g_why_not.store(kTooLate);
      return;
    }
    // The program may call some functions by their hooks, and some not.
    inject::LookHandlesUp();
    if (Rebind() != 0 && in_use) {
      inject::Say(
          "an object was loaded after libiket_injection.so that may have taken the driver's "
          "functions without it; what it loads and launches is not recorded then (LD_PRELOAD "
          "helps)");
    }
  } catch (...) {
    g_why_not.store("out of memory");
  }
}

const char* WhyNotIntercepted() noexcept { return g_why_not.load(); }

}  // namespace iket::profiling_session
