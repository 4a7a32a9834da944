/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that profiles itself with iket/iket_profiling_session.h: it does, one after the other,
 * what its words say, and prints a line "WORD CODE" for each call of the session. C11; builds with
 * our header and library, and with NVIDIA's, whose names they are:
 *
 *   cc -std=c11 -I.../include -I$CUDA/include self_profile.c -L... -liket_injection -lcuda
 * -lpthread
 *
 *   self_profile IMAGE KERNEL WORD...
 *
 *   open=LIBRARY           built with -DSELF_PROFILE_OPEN, and not linked: the library, by dlopen()
 *   take look-up           the driver's functions, as the linker has them, or as the CUDA runtime
 * finds them: by cuGetProcAddress, which dlsym() finds; else taken when needed use=N the handle of
 * the words that follow, 0 to 3 version create start stop clear save=PATH destroy      the
 * functions of the session flags=N cluster=X,Y,Z size=N log=N timestamps=N own-context
 * other-context usual   its options init load launch launch=N many unload sync end         the
 * driver: the kernel is launched with 2 CTAs of 64 threads and may take a pointer to 4 KiB and the
 * int 5 race                   two threads start and stop sessions of their own as fast as they can
 *   fork                   a child does what the next word says, and ends
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <iket/iket_profiling_session.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the session ------------------------------------------------------------------------------ */

#define FUNCTIONS(X) \
  X(GetApiVersion)   \
  X(OptionsInit)     \
  X(Create)          \
  X(Destroy)         \
  X(SetOptions)      \
  X(Start)           \
  X(Stop)            \
  X(ClearTraceData)  \
  X(SaveTrace)

static struct {
#define MEMBER(name) __typeof__(&IketProfilingSession##name) name;
  FUNCTIONS(MEMBER)
} session;

static int OpenSession(const char* path) {
#ifdef SELF_PROFILE_OPEN
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
#define FIND(name)                                                            \
  {                                                                           \
    void* const found = dlsym(library, "IketProfilingSession" #name);         \
    if (found == NULL) return fprintf(stderr, "%s: no " #name "\n", path), 1; \
    memcpy(&session.name, &found, sizeof found);                              \
  }
  FUNCTIONS(FIND)
#else
  (void)path;
#define TAKE(name) session.name = IketProfilingSession##name;
  FUNCTIONS(TAKE)
#endif
  return 0;
}

static IketProfilingSessionHandle handles[4];
static int used;

static int Say(const char* word, IketProfilingSessionResult code) {
  printf("%s %u\n", word, code);
  return fflush(stdout);
}

static IketProfilingSessionOptions Usual(void) {
  IketProfilingSessionOptions options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  if (session.OptionsInit(&options) != IKET_PROFILING_SESSION_SUCCESS) abort();
  return options;
}

/* --- the driver ------------------------------------------------------------------------------- */

#define DRIVER(X)             \
  X(cuInit)                   \
  X(cuDeviceGet)              \
  X(cuDevicePrimaryCtxRetain) \
  X(cuCtxSetCurrent)          \
  X(cuCtxSynchronize)         \
  X(cuMemAlloc)               \
  X(cuModuleLoadData)         \
  X(cuModuleGetFunction)      \
  X(cuModuleUnload)           \
  X(cuLaunchKernel)           \
  X(cuDevicePrimaryCtxReset)

static struct {
#define DRIVER_MEMBER(name) __typeof__(&name) name;
  DRIVER(DRIVER_MEMBER)
} driver;

static CUcontext context;
static CUmodule module;
static CUfunction function;
static CUdeviceptr memory;

static int Good(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) fprintf(stderr, "%s: %d\n", call, (int)result);
  return result != CUDA_SUCCESS;
}
#define GOOD(call) Good(driver.call, #call)

static int LookDriverUp(void) {
  typedef CUresult (*GetAddress)(const char*, void**, int, cuuint64_t,
                                 CUdriverProcAddressQueryResult*);
  GetAddress get;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (found == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  memcpy(&get, &found, sizeof found);
#define LOOK_UP(name)                                                                     \
  {                                                                                       \
    void* address = NULL;                                                                 \
    if (get(#name, &address, CUDA_VERSION, 0, NULL) != CUDA_SUCCESS || address == NULL) { \
      return fprintf(stderr, "no " #name "\n"), 1;                                        \
    }                                                                                     \
    memcpy(&driver.name, &address, sizeof address);                                       \
  }
  DRIVER(LOOK_UP)
  return 0;
}

static int Take(void) {
#define DRIVER_TAKE(name) driver.name = name;
  DRIVER(DRIVER_TAKE)
  return 0;
}

static int Init(void) {
  CUdevice device = 0;
  if (context != NULL) return 0;
  if (driver.cuInit == NULL) Take();
  return GOOD(cuInit(0)) || GOOD(cuDeviceGet(&device, 0)) ||
         GOOD(cuDevicePrimaryCtxRetain(&context, device)) || GOOD(cuCtxSetCurrent(context)) ||
         GOOD(cuMemAlloc(&memory, 4096));
}

static int Load(const char* path, const char* name) {
  static char image[4 << 20];
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return perror(path), 1;
  const size_t bytes = fread(image, 1, sizeof image - 1, file);
  image[bytes] = 0;
  fclose(file);
  return Init() || GOOD(cuModuleLoadData(&module, image)) ||
         GOOD(cuModuleGetFunction(&function, module, name));
}

static int Launch(long times) {
  int five = 5;
  void* arguments[] = {&memory, &five};
  for (long i = 0; i < times; ++i) {
    if (GOOD(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL))) return 1;
  }
  return 0;
}

static int Many(void) {
  const CUfunction before = function;
  if (GOOD(cuModuleGetFunction(&function, module, "Many"))) return 1;
  const int failed = Launch(1);
  function = before;
  return failed;
}

static int End(void) {
  context = NULL;
  return GOOD(cuDevicePrimaryCtxReset(0));
}

/* --- words ------------------------------------------------------------------------------------ */

static pthread_barrier_t both;

/* How often a thread came first: a start that succeeds is followed by a stop that does. */
static void* Race(void* handle) {
  long started = 0;
  pthread_barrier_wait(&both);
  for (int i = 0; i < 2000; ++i) {
    const IketProfilingSessionResult code = session.Start((IketProfilingSessionHandle)handle);
    if (code == IKET_PROFILING_SESSION_DUPLICATE_OPERATION) continue;
    if (code != IKET_PROFILING_SESSION_SUCCESS) return (void*)-1l;
    if (session.Stop((IketProfilingSessionHandle)handle) != IKET_PROFILING_SESSION_SUCCESS) {
      return (void*)-1l;
    }
    ++started;
  }
  return (void*)started;
}

static int RaceBoth(void) {
  pthread_t threads[2];
  void* started[2];
  pthread_barrier_init(&both, NULL, 2);
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, Race, handles[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], &started[i]);
  const int fine = (long)started[0] > 0 && (long)started[1] > 0;
  printf("race %s\n", fine ? "ok" : "not ok");
  return fflush(stdout);
}

static int Option(const char* word) {
  static const void* contexts[1];
  static IketProfilingSessionOptions options;
  char* end = NULL;
  const char* const equals = strchr(word, '=');
  const unsigned long long value = equals != NULL ? strtoull(equals + 1, &end, 0) : 0;
  if (options.struct_size == 0 || strcmp(word, "usual") == 0) options = Usual();
  if (strncmp(word, "flags=", 6) == 0) options.flags = (uint32_t)value;
  if (strncmp(word, "size=", 5) == 0) options.struct_size = (uint32_t)value;
  if (strncmp(word, "log=", 4) == 0) options.log_level = (uint32_t)value;
  if (strncmp(word, "timestamps=", 11) == 0) options.max_ts_per_warp = value;
  if (strncmp(word, "cluster=", 8) == 0) {
    unsigned x = 0, y = 0, z = 0;
    if (sscanf(equals, "=%u,%u,%u", &x, &y, &z) != 3) return 1;
    options.flags |= IKET_PROFILING_SESSION_ENABLE_CLUSTER;
    options.enabled_cluster.x = x;
    options.enabled_cluster.y = (uint16_t)y;
    options.enabled_cluster.z = (uint16_t)z;
  }
  if (strcmp(word, "own-context") == 0 || strcmp(word, "other-context") == 0) {
    contexts[0] = word[1] == 'w' ? (const void*)context : (const void*)&contexts;
    options.profiled_cuda_contexts = contexts;
    options.num_profiled_cuda_contexts = 1;
  }
  return Say(word, session.SetOptions(handles[used], &options));
}

static int Version(void) {
  uint32_t major = 0, minor = 0;
  const IketProfilingSessionResult code = session.GetApiVersion(&major, &minor);
  printf("version %u %u.%u\n", code, major, minor);
  return fflush(stdout);
}

static int Do(char** words, const char* word) {
  const char* const equals = strchr(word, '=');
#define IS(text) (strcmp(word, text) == 0)
#define BEGINS(text) (strncmp(word, text, strlen(text)) == 0)
  if (BEGINS("open=")) return OpenSession(equals + 1);
  if (IS("take")) return Take();
  if (IS("look-up")) return LookDriverUp();
  if (BEGINS("use=")) return used = atoi(equals + 1) & 3, 0;
  if (IS("version")) return Version();
  if (IS("create")) return Say(word, session.Create(&handles[used]));
  if (IS("start")) return Say(word, session.Start(handles[used]));
  if (IS("stop")) return Say(word, session.Stop(handles[used]));
  if (IS("clear")) return Say(word, session.ClearTraceData(handles[used]));
  if (IS("destroy")) return Say(word, session.Destroy(handles[used]));
  if (BEGINS("save=")) return Say("save", session.SaveTrace(handles[used], equals + 1));
  if (IS("init")) return Init();
  if (IS("load")) return Load(words[1], words[2]);
  if (IS("launch")) return Launch(1);
  if (BEGINS("launch=")) return Launch(atol(equals + 1));
  if (IS("many")) return Many();
  if (IS("unload")) return GOOD(cuModuleUnload(module));
  if (IS("sync")) return GOOD(cuCtxSynchronize());
  if (IS("end")) return End();
  if (IS("race")) return RaceBoth();
  return Option(word);
}

int main(int count, char** words) {
#ifndef SELF_PROFILE_OPEN
  if (OpenSession(NULL) != 0) return 1;
#endif
  for (int i = 3; i < count; ++i) {
    if (strcmp(words[i], "fork") == 0 && ++i < count) {
      const pid_t child = fork();
      if (child == 0) _exit(Do(words, words[i]));
      int status = 0;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    } else if (Do(words, words[i]) != 0) {
      return fprintf(stderr, "at '%s'\n", words[i]), 1;
    }
  }
  return printf("done, ok\n") > 0 ? 0 : 1;
}
