// The look-up of symbols, in front of glibc's own. Everything that is not a hooked driver function
// goes on to glibc by a tail call: it finds the caller of RTLD_NEXT and RTLD_DEFAULT by the return
// address, so this function's frame must be gone by then. Compiled with optimisation in every build
// type (CMakeLists.txt).
#include <dlfcn.h>

#include "inject/driver.h"
#include "inject/hooks.h"

namespace {

__attribute__((noinline)) void* Hooked(void* handle, const char* name,
                                       iket::inject::DlsymFunction real) {
  void* hook = iket::inject::HookByExport(name);
  // Only where the driver has the function itself.
  return hook != nullptr && real(handle, name) != nullptr ? hook : nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  const iket::inject::DlsymFunction real = iket::inject::RealDlsym();
  if (real == nullptr) return nullptr;
  // RTLD_NEXT asks for what comes after the caller, by its meaning not us.
  if (handle != RTLD_NEXT && name[0] == 'c' && name[1] == 'u') {
    if (void* hook = Hooked(handle, name, real)) return hook;
  }
  return real(handle, name);
}
