/* What libstdc++ and libgcc, linked statically, ask of the glibc that they were built against and
 * an older one does not have: linked into everything that `make dist` packs, so that it runs from
 * glibc 2.34 on. Hidden, so that nobody else in the process meets them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* What the linker is told to look for, which brings the rest along. */
HIDDEN int iket_older_glibc;

#if __GLIBC_PREREQ(2, 36)
/* Of std::random_device. */
HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  size_t got = 0;
  while (got < sizeof value) {
    const ssize_t more = getrandom((char *)&value + got, sizeof value - got, 0);
    if (more > 0) got += (size_t)more;
    if (more < 0 && errno != EINTR) abort(); /* glibc's own does so too */
  }
  return value;
}
#endif

#if __GLIBC_PREREQ(2, 35)
/* Of the unwinder: the loaded object that an instruction belongs to, and its table of frames. */
struct search {
  uintptr_t address;
  struct dl_find_object *result;
};

static int visit(struct dl_phdr_info *object, size_t size, void *data) {
  struct search *const search = data;
  uintptr_t start = UINTPTR_MAX, end = 0, frames = 0;
  int inside = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME) frames = first;
    if (segment->p_type != PT_LOAD) continue;
    if (first < start) start = first;
    if (first + segment->p_memsz > end) end = first + segment->p_memsz;
    if (search->address >= first && search->address < first + segment->p_memsz) inside = 1;
  }
  if (!inside) return 0;
  if (frames == 0) return -1;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void *)start;
  search->result->dlfo_map_end = (void *)end;
  search->result->dlfo_link_map = NULL; /* the unwinder does not look at it */
  search->result->dlfo_eh_frame = (void *)frames;
  return 1;
}

HIDDEN int _dl_find_object(void *address, struct dl_find_object *result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
#endif
