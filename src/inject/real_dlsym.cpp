// glibc's own dlsym. Not instrumented in sanitizer builds (CMakeLists.txt): their runtimes look
// symbols up, through our dlsym, before they are ready for anything.
#include <dlfcn.h>

#include <atomic>

#include "inject/driver.h"

namespace iket::inject {

DlsymFunction RealDlsym() noexcept {
  static std::atomic<DlsymFunction> found{nullptr};
  DlsymFunction real = found.load(std::memory_order_relaxed);
  if (real != nullptr) return real;
  // dlsym moved from libdl to libc in glibc 2.34 and got a new version then.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    real = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (real != nullptr) break;
  }
  found.store(real, std::memory_order_relaxed);
  return real;
}

}  // namespace iket::inject
