// SPDX-License-Identifier: Apache-2.0
//
// embed.h: a program that traces itself, in a notebook, a library, a test: no `iket profile` around
// it, and no function of the driver replaced.
//
//   #include <iket/embed.h>
//
//   if (const char* why = iket_embed_open(NULL)) fprintf(stderr, "not traced: %s\n", why);
//
//   IKET_EMBED(cuModuleLoadData)(&module, cubin);    // as cuModuleLoadData, and patched
//   IKET_EMBED(cuModuleGetFunction)(&kernel, module, "step");
//   IKET_EMBED(cuLaunchKernel)(kernel, ...);
//
//   if (const char* why = iket_embed_write("step.iketcap")) ...   // then: iket report step.iketcap
//
// The collector is a library (libiket_inject.so) that iket_embed_open() loads. Its images, rings
// and files are those of `iket profile`; only who calls it differs. iket/session.h works with it:
// windows, marks, snapshots, flushes.
//
// Kernels of <<<>>> are loaded by the CUDA runtime behind everybody's back: they are not seen; nor
// is what other libraries of the program load themselves, unless they take the image from
// iket_embed_patch(). `iket profile` sees all of that. Under `iket profile` all of this works and
// changes nothing: the program's calls are traced once.
//
// C99 and C++; needs cuda.h, and nothing to link but the C library (before glibc 2.34: -ldl, too).
// Every function may be called from any thread; none throws or ends the program. A text that is
// returned says what went wrong, and is good until the thread's next call; NULL: nothing did.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <iket/session.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
#define IKET_EMBED_NOEXCEPT noexcept
extern "C" {
#else
#define IKET_EMBED_NOEXCEPT
#endif

// What is zero is as nobody wished otherwise.
typedef struct iket_embed_options {
  size_t size;            // sizeof(struct iket_embed_options), so that later versions know this one
  const char* library;    // libiket_inject.so; else $IKET_COLLECTOR, else where dlopen() finds it
  const char* folder;     // for snapshots and, at the end of the process, its capture. NULL: none;
                          // what must be written meanwhile goes with exit() ($TMPDIR)
  uint64_t ring_bytes;    // of the ring of each warp slot, a power of two: 32 KiB
  uint64_t memory_bytes;  // the most device memory for all rings of one GPU: a sixteenth of it
  const char* selection;  // what is recorded: lines of docs/design/selection.md, such as
                          // "kernel REGEX"; NULL: $IKET_SELECTION, else everything
  int flight;             // rings in the host's memory, which can be read after a fault
} iket_embed_options;

// A patched image, which its last owner frees: the caller, or the modules that are bound to it.
typedef struct iket_embed_image iket_embed_image;

static inline void* iket_embed_detail_find(const char* name) IKET_EMBED_NOEXCEPT {
  void* const library = __atomic_load_n(&iket_embed_library, __ATOMIC_ACQUIRE);
  return library != NULL ? dlsym(library, name) : NULL;
}
// Finds the function as a `type`, which then is iket_embed_function_, or returns `otherwise`.
#define IKET_EMBED_DETAIL_FIND(otherwise, name, type)           \
  type iket_embed_function_;                                    \
  void* const iket_embed_found_ = iket_embed_detail_find(name); \
  if (iket_embed_found_ == NULL) return otherwise;              \
  __builtin_memcpy(&iket_embed_function_, &iket_embed_found_, sizeof(void*))

// Loads the collector. Call it before the first image is loaded; cuInit() may come before or after.
// A second call has no effect. If the process is traced by `iket profile`, its options count.
static inline const char* iket_embed_open(const iket_embed_options* options) IKET_EMBED_NOEXCEPT {
  const char* (*function)(const iket_embed_options*);
  const char* path = options != NULL ? options->library : NULL;
  const char* why;
  void *library, *found;
  if (path == NULL) path = getenv("IKET_COLLECTOR");
  if (path == NULL) path = "libiket_inject.so";
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return dlerror();
  found = dlsym(library, "iket_embed1_open");
  if (found == NULL) return "the library is of another version of iket, or none of iket's";
  __builtin_memcpy(&function, &found, sizeof(void*));
  why = function(options);
  if (why == NULL) __atomic_store_n(&iket_embed_library, library, __ATOMIC_RELEASE);
  return why;
}

// A function of the driver as the collector has it: cuModuleLoadData and its like, cuLibrary*,
// cuLaunch*, cuGraph*, cuCtxDestroy and so on; the driver's own where there is nothing to do for
// it, or no collector. NULL if neither has it. `name` is the exported one, with its version.
static inline void* iket_embed_function(const char* name) IKET_EMBED_NOEXCEPT {
  typedef void* (*function)(const char*);
  if (__atomic_load_n(&iket_embed_library, __ATOMIC_ACQUIRE) == NULL) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver != NULL ? dlsym(driver, name) : NULL;
  }
  IKET_EMBED_DETAIL_FIND(NULL, "iket_embed1_function", function);
  return iket_embed_function_(name);
}

// The same with its type: IKET_EMBED(cuLaunchKernel)(kernel, ...). Looks it up each time (some
// hundred nanoseconds); keep the pointer where that matters. A context that has traced code must be
// destroyed so, too, or after the last iket_embed_write().
#define IKET_EMBED(function) \
  ((__typeof__(&function))iket_embed_function(IKET_EMBED_DETAIL_NAME(function)))
#define IKET_EMBED_DETAIL_NAME(function) IKET_EMBED_DETAIL_TEXT(function)
#define IKET_EMBED_DETAIL_TEXT(function) #function

// Writes what all contexts have recorded so far to a capture at `path`, when their kernels have
// ended: it waits for them (to look at kernels that run: iket_session_snapshot()). Nothing is taken
// out of the rings, so the next file has it, too, as far as it was not overwritten;
// iket_session_flush() keeps it from that. A file that is there is replaced when the new one is
// whole, and only then; what is no plain file (a device, a link) is not. Costs a copy of the rings
// that were used (270 MB at the most, by default) and packing it.
static inline const char* iket_embed_write(const char* path) IKET_EMBED_NOEXCEPT {
  typedef const char* (*function)(const char*);
  IKET_EMBED_DETAIL_FIND("iket_embed_open() has not been called, or failed", "iket_embed1_write",
                         function);
  return iket_embed_function_(path);
}

// --- For code that somebody else loads and launches -------------------------------------------

// The image (cubin or fatbin, as cuModuleLoadData takes them) with its recording code; NULL if
// there is nothing to record in it, or the process is traced by `iket profile`, which patches it
// when it is loaded: then load the original.
static inline iket_embed_image* iket_embed_patch(const void* image) IKET_EMBED_NOEXCEPT {
  typedef iket_embed_image* (*function)(const void*);
  IKET_EMBED_DETAIL_FIND(NULL, "iket_embed1_patch", function);
  return iket_embed_function_(image);
}

// Its bytes: good until it is released.
static inline const void* iket_embed_image_data(const iket_embed_image* image,
                                                size_t* bytes) IKET_EMBED_NOEXCEPT {
  typedef const void* (*function)(const iket_embed_image*, size_t*);
  IKET_EMBED_DETAIL_FIND(NULL, "iket_embed1_image_data", function);
  return iket_embed_function_(image, bytes);
}

// Tells the module, which was loaded from these bytes into the current context, where its rings
// are. Its kernels must not be launched before: they would write to where there is no memory. If a
// text is returned, unload the module and load the original.
static inline const char* iket_embed_bind(iket_embed_image* image,
                                          CUmodule module) IKET_EMBED_NOEXCEPT {
  typedef const char* (*function)(iket_embed_image*, CUmodule);
  IKET_EMBED_DETAIL_FIND("there is no collector", "iket_embed1_bind", function);
  return iket_embed_function_(image, module);
}

// The module has been unloaded, or is about to be.
static inline void iket_embed_unbind(CUmodule module) IKET_EMBED_NOEXCEPT {
  typedef void (*function)(CUmodule);
  IKET_EMBED_DETAIL_FIND(, "iket_embed1_unbind", function);
  iket_embed_function_(module);
}

// The caller needs the image no more.
static inline void iket_embed_release(iket_embed_image* image) IKET_EMBED_NOEXCEPT {
  typedef void (*function)(iket_embed_image*);
  IKET_EMBED_DETAIL_FIND(, "iket_embed1_release", function);
  iket_embed_function_(image);
}

// Says that `kernel` is about to be launched so: then the launch has its number, its host time and
// its shape in the capture, and counts as complete when all of its warps are there. Without it the
// events are recorded all the same. Not for launches by IKET_EMBED. Not CUDA_SUCCESS: do not
// launch.
static inline CUresult iket_embed_launching(CUfunction kernel,
                                            const CUlaunchConfig* config) IKET_EMBED_NOEXCEPT {
  typedef CUresult (*function)(CUfunction, const CUlaunchConfig*);
  IKET_EMBED_DETAIL_FIND(CUDA_SUCCESS, "iket_embed1_launching", function);
  return iket_embed_function_(kernel, config);
}

#undef IKET_EMBED_DETAIL_FIND
#undef IKET_EMBED_NOEXCEPT

#ifdef __cplusplus
}  // extern "C"
#endif
