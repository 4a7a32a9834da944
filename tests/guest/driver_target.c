/* The other half of driver_stubs.py: where a call goes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kDriver = 4 }; /* of fail_nth.c */

extern const int64_t iket_driver_offsets[];
/* Of fail_nth, where that is preloaded. */
extern int IketFails(int kind, const void *caller) __attribute__((weak));

/* Null if the call shall fail. */
__attribute__((visibility("hidden"))) void *IketDriverTarget(long number, const void *caller) {
  static uintptr_t base;
  if (__atomic_load_n(&base, __ATOMIC_ACQUIRE) == 0) {
    const char *const path = getenv("IKET_FAIL_DRIVER");
    void *const library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct link_map *map = NULL;
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
      fprintf(stderr, "driver_target: no driver behind IKET_FAIL_DRIVER: %s\n", dlerror());
      abort();
    }
    __atomic_store_n(&base, map->l_addr, __ATOMIC_RELEASE);
  }
  const int64_t offset = iket_driver_offsets[number];
  if (offset < 0 && IketFails != NULL && IketFails(kDriver, caller)) return NULL;
  return (void *)(base + (uintptr_t)(offset < 0 ? -offset : offset));
}
