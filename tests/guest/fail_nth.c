/* fail_nth: makes one call fail that iket's library makes in a program, for faults_test.py.
 *
 * Preloaded beside libiket_inject.so. Counts the calls of one kind that come out of that library
 * (by the return address) in the program IKET_FAIL_PROGRAM, lets number IKET_FAIL_NTH fail (0:
 * none; with IKET_FAIL_ON also all after it), and writes at the end how many there were into the
 * file IKET_FAIL_COUNT. Kinds, IKET_FAIL_KIND:
 *
 *   memory    malloc, calloc, realloc
 *   file      open, posix_fallocate, ftruncate, write, pwrite, rename, mkdir, fstat, mmap
 *   socket    socket, connect, sendmsg
 *   driver    its own calls of libcuda, which go through the stubs of driver_stubs.py
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum Kind { kNone, kMemory, kFile, kSocket, kDriver };

static enum Kind kind;
static long nth;
static long count;
static int in_use;
static int goes_on;
static char count_path[4096];

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static int CollectorsRange(struct dl_phdr_info *object, size_t size, void *data) {
  uintptr_t *range = data;
  (void)size;
  if (strstr(object->dlpi_name, "iket_inject") == NULL) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    const uintptr_t first = object->dlpi_addr + segment->p_vaddr;
    if (range[0] == 0 || first < range[0]) range[0] = first;
    if (first + segment->p_memsz > range[1]) range[1] = first + segment->p_memsz;
  }
  return 1;
}

static int IsCollector(const void *address) {
  static uintptr_t range[2];
  if (range[1] == 0) dl_iterate_phdr(CollectorsRange, range);
  return (uintptr_t)address >= range[0] && (uintptr_t)address < range[1];
}

/* True if this call is the one. */
int IketFails(int of, const void *caller);
static int Fails(enum Kind of, const void *caller) {
  if (!in_use || of != kind || !IsCollector(caller)) return 0;
  const long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  return nth != 0 && (number == nth || (goes_on && number > nth));
}

int IketFails(int of, const void *caller) { return Fails((enum Kind)of, caller); }

__attribute__((constructor)) static void Begin(void) {
  const char *program = getenv("IKET_FAIL_PROGRAM"), *what = getenv("IKET_FAIL_KIND");
  const char *number = getenv("IKET_FAIL_NTH"), *path = getenv("IKET_FAIL_COUNT");
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (program == NULL || what == NULL || number == NULL || path == NULL || length <= 0) return;
  self[length] = 0;
  if (strcmp(self, program) != 0) return;
  kind = !strcmp(what, "memory")   ? kMemory
         : !strcmp(what, "file")   ? kFile
         : !strcmp(what, "socket") ? kSocket
         : !strcmp(what, "driver") ? kDriver
                                   : kNone;
  nth = strtol(number, NULL, 10);
  goes_on = getenv("IKET_FAIL_ON") != NULL;
  snprintf(count_path, sizeof count_path, "%s", path);
  in_use = 1;
}

__attribute__((destructor)) static void End(void) {
  if (!in_use) return;
  in_use = 0;
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", count);
  const int file = open(count_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  if (write(file, text, (size_t)length) < 0) abort();
  close(file);
}

#define CALLER __builtin_return_address(0)
#define NEXT(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

void *malloc(size_t size) { return Fails(kMemory, CALLER) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) {
  return Fails(kMemory, CALLER) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *old, size_t size) {
  return Fails(kMemory, CALLER) ? NULL : __libc_realloc(old, size);
}

static int FailWith(int error) {
  errno = error;
  return -1;
}

int open(const char *path, int flags, ...) {
  NEXT(open);
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return Fails(kFile, CALLER) ? FailWith(EMFILE) : real(path, flags, mode);
}
int posix_fallocate(int file, off_t offset, off_t length) {
  NEXT(posix_fallocate);
  return Fails(kFile, CALLER) ? ENOSPC : real(file, offset, length);
}
int ftruncate(int file, off_t length) {
  NEXT(ftruncate);
  return Fails(kFile, CALLER) ? FailWith(EIO) : real(file, length);
}
ssize_t write(int file, const void *bytes, size_t size) {
  NEXT(write);
  return Fails(kFile, CALLER) ? FailWith(ENOSPC) : real(file, bytes, size);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
  NEXT(pwrite);
  return Fails(kFile, CALLER) ? FailWith(ENOSPC) : real(file, bytes, size, offset);
}
int rename(const char *from, const char *to) {
  NEXT(rename);
  return Fails(kFile, CALLER) ? FailWith(EIO) : real(from, to);
}
int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  return Fails(kFile, CALLER) ? FailWith(EROFS) : real(path, mode);
}
int fstat(int file, struct stat *what) {
  NEXT(fstat);
  return Fails(kFile, CALLER) ? FailWith(EIO) : real(file, what);
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  NEXT(mmap);
  if (!Fails(kFile, CALLER)) return real(address, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
int socket(int domain, int type, int protocol) {
  NEXT(socket);
  return Fails(kSocket, CALLER) ? FailWith(EMFILE) : real(domain, type, protocol);
}
int connect(int file, const struct sockaddr *address, socklen_t size) {
  NEXT(connect);
  return Fails(kSocket, CALLER) ? FailWith(ECONNREFUSED) : real(file, address, size);
}
ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
  NEXT(sendmsg);
  return Fails(kSocket, CALLER) ? FailWith(EPIPE) : real(file, message, flags);
}
