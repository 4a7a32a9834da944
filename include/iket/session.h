// SPDX-License-Identifier: Apache-2.0
//
// session.h: what a program on the host can say to iket while it is traced.
//
//   #include <iket/session.h>
//
//   warm_up();
//   iket::session::mark("warmed up");
//   {
//     iket::session::window w;  // recorded from here to the end of the scope
//     step<<<grid, block>>>(...);
//   }
//
// Build as ever; `iket profile --paused -- ./app` records nothing until the first start(). Without
// --paused all is recorded until the first stop(). C has the same functions, iket_session_start()
// and so on; C++ needs C++17.
//
// It works as well with a collector that the program opens itself, iket/embed.h; then snapshots and
// flushes are made in this process.
//
// Not traced, every call is a test of a word that was looked up on the first one: some nanoseconds.
// Nothing needs to be linked but the C library (before glibc 2.34: -ldl, too).
//
// All functions may be called from any thread at any time, before the first use of CUDA as well;
// but not in a signal handler, which may have interrupted one of them. None throws (but for
// std::bad_alloc of the string that snapshot() returns), ends the program, or changes what CUDA's
// calls return. A child after fork() counts as not traced, if its parent had loaded code with
// marks.
#pragma once

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
#include <string>
#define IKET_SESSION_NOEXCEPT noexcept
extern "C" {
#else
#define IKET_SESSION_NOEXCEPT
#endif

// The handle of a collector that the program opened itself (iket/embed.h). Weak: one variable for
// all files of a program.
__attribute__((weak)) void* iket_embed_library;

// The collector's function of that name, looked up once; null where there is no collector. `cache`
// is null before: then points to the function, or to itself where there is none.
static inline void* iket_session_detail_find(void** cache, const char* name) IKET_SESSION_NOEXCEPT {
  void* found = __atomic_load_n(cache, __ATOMIC_RELAXED);
  void* library = __atomic_load_n(&iket_embed_library, __ATOMIC_ACQUIRE);
  if (found == (void*)0 || (found == (void*)cache && library != (void*)0)) {
    found = dlsym((void*)0 /* RTLD_DEFAULT, which C has with _GNU_SOURCE only */, name);
    // Another part of the program may have opened it.
    if (found == (void*)0 && library == (void*)0) {
      library = dlopen("libiket_inject.so", RTLD_LAZY | RTLD_NOLOAD);
    }
    if (found == (void*)0 && library != (void*)0) found = dlsym(library, name);
    if (found == (void*)0) found = (void*)cache;
    __atomic_store_n(cache, found, __ATOMIC_RELAXED);
  }
  return found == (void*)cache ? (void*)0 : found;
}

// Finds it as a `type`: iket_session_function, which is good where iket_session_found is not null.
#define IKET_SESSION_DETAIL_FIND(type, name)                                      \
  static void* iket_session_cache;                                                \
  void* iket_session_found = iket_session_detail_find(&iket_session_cache, name); \
  type iket_session_function;                                                     \
  __builtin_memcpy(&iket_session_function, &iket_session_found, sizeof iket_session_function)

// Not 0 if this process is traced, or will be as soon as it loads code with marks.
static inline int iket_session_attached(void) IKET_SESSION_NOEXCEPT {
  typedef int (*function)(void);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_attached");
  return iket_session_found != (void*)0 ? iket_session_function() : 0;
}

// Launches from now on are recorded, or no longer are: those of the whole process, on all GPUs.
// A launch is inside or outside as a whole: the first launch after a change waits until what was
// launched before, by any thread in any stream, has ended. So do not change it while a kernel waits
// for another one that is still to be launched. The calls themselves wait for nothing.
// They do not nest: one stop() ends what two start() began. Further conditions stay: --launch,
// --nvtx, --kernel. A graph is inside if it is launched inside.
static inline void iket_session_start(void) IKET_SESSION_NOEXCEPT {
  typedef void (*function)(void);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_start");
  if (iket_session_found != (void*)0) iket_session_function();
}
static inline void iket_session_stop(void) IKET_SESSION_NOEXCEPT {
  typedef void (*function)(void);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_stop");
  if (iket_session_found != (void*)0) iket_session_function();
}

// Keeps a text, at most 4096 bytes of it, with the time of now (CLOCK_MONOTONIC): a point on the
// track "host" of the timeline, and a line of `iket info`. There it stands where the GPU was at
// that time, as far as the two clocks can be joined: to some microseconds. In a window or not.
// A mark writes some hundred bytes to a file; it is for steps of the host, not for inner loops.
// If the process never loads code with marks, there is no capture, and marks are forgotten.
static inline void iket_session_mark(const char* text) IKET_SESSION_NOEXCEPT {
  typedef void (*function)(const char*);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_mark");
  if (iket_session_found != (void*)0) iket_session_function(text);
}

// Writes down what this process has recorded so far, as `iket snapshot` does, into a capture of its
// own; returns the length in bytes of its path and writes that to `path`, cut to `capacity` with
// its final zero. 0 and "" where there is no snapshot: not traced, nothing traced was launched yet,
// a program that embeds has named no folder, the disk is full; a line on standard error says which
// of the last ones. Waits for the file, for a minute at most, but not for kernels:
// what those that run have recorded so far is in it. Takes about as long as copying the rings (270
// MB by default) and packing what is in them.
static inline size_t iket_session_snapshot(char* path, size_t capacity) IKET_SESSION_NOEXCEPT {
  typedef size_t (*function)(char*, size_t);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_snapshot");
  if (iket_session_found != (void*)0) return iket_session_function(path, capacity);
  if (path != (char*)0 && capacity != 0) path[0] = 0;
  return 0;
}

// Takes what was recorded so far out of the rings and into the capture, so that nothing overwrites
// it: after a step that fills them, before the next. Of kernels that have ended every event that is
// still in a ring is kept, but for the oldest record of a ring that has come around; synchronise
// first. Not 0 if it was done; else as snapshot(). Waits as that does.
// What it changes: the capture is not packed; snapshots lack what was flushed and has been written
// over; and a launch whose rings come around afterwards counts as partial although its events are
// all there, since only what follows in a ring proves that its last warp had ended.
static inline int iket_session_flush(void) IKET_SESSION_NOEXCEPT {
  typedef int (*function)(void);
  IKET_SESSION_DETAIL_FIND(function, "iket_session_flush");
  return iket_session_found != (void*)0 ? iket_session_function() : 0;
}

#undef IKET_SESSION_DETAIL_FIND

#ifdef __cplusplus
}  // extern "C"

// The same for C++.
namespace iket {
namespace session {

inline bool attached() noexcept { return ::iket_session_attached() != 0; }
inline void start() noexcept { ::iket_session_start(); }
inline void stop() noexcept { ::iket_session_stop(); }
inline void mark(const char* text) noexcept { ::iket_session_mark(text); }
inline void mark(const std::string& text) noexcept { ::iket_session_mark(text.c_str()); }
inline bool flush() noexcept { return ::iket_session_flush() != 0; }

// The path; empty where there is no snapshot.
inline std::string snapshot() {
  char path[4096];
  return ::iket_session_snapshot(path, sizeof path) != 0 ? std::string(path) : std::string();
}

// start() here, stop() at the end of the scope. It needs a name of its own.
class window {
 public:
  [[nodiscard]] window() noexcept { start(); }
  ~window() { stop(); }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
};

}  // namespace session
}  // namespace iket
#endif  // __cplusplus

#undef IKET_SESSION_NOEXCEPT
