/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of iket/iket_profiling_session.h as far as it can be seen without a driver: layout,
 * numbers, and what each call returns. The codes are those of NVIDIA's library 4.8.1, seen with
 * this program, which builds with its header and library, too. Prints what is otherwise. C11. */
#include <iket/iket_profiling_session.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef IketProfilingSessionOptions Options;
typedef IketProfilingSessionClusterIndex Cluster;
_Static_assert(sizeof(Cluster) == 8, "layout");
_Static_assert(offsetof(Cluster, x) == 0, "layout");
_Static_assert(offsetof(Cluster, y) == 4, "layout");
_Static_assert(offsetof(Cluster, z) == 6, "layout");
_Static_assert(sizeof(Options) == 56 && alignof(Options) == 8, "layout");
_Static_assert(offsetof(Options, struct_size) == 0, "layout");
_Static_assert(offsetof(Options, flags) == 4, "layout");
_Static_assert(offsetof(Options, max_ts_per_warp) == 8, "layout");
_Static_assert(offsetof(Options, device_buffer_size) == 16, "layout");
_Static_assert(offsetof(Options, profiled_cuda_contexts) == 24, "layout");
_Static_assert(offsetof(Options, num_profiled_cuda_contexts) == 32, "layout");
_Static_assert(offsetof(Options, enabled_cluster) == 40, "layout");
_Static_assert(offsetof(Options, log_level) == 48, "layout");
_Static_assert(sizeof(IketProfilingSessionResult) == 4, "layout");
_Static_assert(IKET_PROFILING_SESSION_API_VERSION_MAJOR == 1, "version");
_Static_assert(IKET_PROFILING_SESSION_API_VERSION_MINOR == 0, "version");
_Static_assert(IKET_PROFILING_SESSION_FEATURE_NOT_SUPPORTED == 2, "number");
_Static_assert(IKET_PROFILING_SESSION_NOT_IMPLEMENTED == 3, "number");
_Static_assert(IKET_PROFILING_SESSION_NOT_INSTRUMENTED == 4, "number");
_Static_assert(IKET_PROFILING_SESSION_UNKNOWN_ERROR == 5, "number");
_Static_assert(IKET_PROFILING_SESSION_INVALID_EVENT_RECORD == 6, "number");
_Static_assert(IKET_PROFILING_SESSION_NO_INSTRUMENT_CONFIG == 7, "number");
_Static_assert(IKET_PROFILING_SESSION_INVALID_STATE == 8, "number");
_Static_assert(IKET_PROFILING_SESSION_INTERNAL_ERROR == 14, "number");
_Static_assert(IKET_PROFILING_SESSION_ENABLE_CLUSTER == 1, "number");
_Static_assert(IKET_PROFILING_SESSION_DEFER_TRACE_READBACK == 2, "number");
_Static_assert(IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY == 4, "number");
_Static_assert(IKET_PROFILING_SESSION_LOG_ERROR == 0, "number");
_Static_assert(IKET_PROFILING_SESSION_LOG_WARN == 1, "number");
_Static_assert(IKET_PROFILING_SESSION_LOG_INFO == 2, "number");

enum { GOOD = 0, INVALID = 1, DUPLICATE = 9, IO = 13 };
_Static_assert(IKET_PROFILING_SESSION_SUCCESS == GOOD, "number");
_Static_assert(IKET_PROFILING_SESSION_INVALID_ARGUMENT == INVALID, "number");
_Static_assert(IKET_PROFILING_SESSION_DUPLICATE_OPERATION == DUPLICATE, "number");
_Static_assert(IKET_PROFILING_SESSION_IO_ERROR == IO, "number");

static int faults;

#define EXPECT(wanted, call)                                           \
  do {                                                                 \
    const unsigned got = (unsigned)(call);                             \
    if (got != (unsigned)(wanted)) {                                   \
      printf("%d: " #call " is %u, not " #wanted "\n", __LINE__, got); \
      ++faults;                                                        \
    }                                                                  \
  } while (0)

static IketProfilingSessionHandle handle;

/* What SetOptions says of the usual options with one of them changed. */
#define EXPECT_OPTION(wanted, change)                                 \
  do {                                                                \
    Options changed = usual;                                          \
    changed.change;                                                   \
    EXPECT(wanted, IketProfilingSessionSetOptions(handle, &changed)); \
  } while (0)

static void TestOptions(void) {
  const void* contexts[2] = {&faults, NULL};
  Options usual;
  memset(&usual, 0, sizeof usual);
  EXPECT(INVALID, IketProfilingSessionOptionsInit(NULL));
  EXPECT(INVALID, IketProfilingSessionOptionsInit(&usual));
  usual.struct_size = 55;
  EXPECT(INVALID, IketProfilingSessionOptionsInit(&usual));
  usual.struct_size = sizeof usual;
  EXPECT(GOOD, IketProfilingSessionOptionsInit(&usual));
  EXPECT(56, usual.struct_size);
  EXPECT(0, usual.flags);
  EXPECT(256, usual.max_ts_per_warp);
  EXPECT(536870912, usual.device_buffer_size);
  EXPECT(1, usual.profiled_cuda_contexts == NULL);
  EXPECT(0, usual.num_profiled_cuda_contexts);
  EXPECT(IKET_PROFILING_SESSION_LOG_WARN, usual.log_level);

  EXPECT(INVALID, IketProfilingSessionSetOptions(NULL, &usual));
  EXPECT(INVALID, IketProfilingSessionSetOptions(handle, NULL));
  EXPECT_OPTION(GOOD, flags = 0);
  EXPECT_OPTION(INVALID, struct_size = 0);
  EXPECT_OPTION(INVALID, struct_size = 55);
  EXPECT_OPTION(GOOD, struct_size = 64);
  EXPECT_OPTION(GOOD, flags = 1);
  EXPECT_OPTION(GOOD, flags = 2);
  EXPECT_OPTION(GOOD, flags = 4);
  EXPECT_OPTION(INVALID, flags = 5);
  EXPECT_OPTION(GOOD, flags = 6);
  EXPECT_OPTION(INVALID, flags = 8);
  EXPECT_OPTION(INVALID, max_ts_per_warp = 0);
  EXPECT_OPTION(GOOD, max_ts_per_warp = 1);
  EXPECT_OPTION(GOOD, max_ts_per_warp = 0xffffffff);
  EXPECT_OPTION(INVALID, max_ts_per_warp = 0x100000000);
  EXPECT_OPTION(INVALID, device_buffer_size = 0);
  EXPECT_OPTION(GOOD, device_buffer_size = 1);
  EXPECT_OPTION(INVALID, num_profiled_cuda_contexts = 1);
  EXPECT_OPTION(GOOD, profiled_cuda_contexts = contexts);
  EXPECT_OPTION(GOOD, log_level = IKET_PROFILING_SESSION_LOG_INFO);
  EXPECT_OPTION(INVALID, log_level = 3);
  usual.profiled_cuda_contexts = contexts;
  EXPECT_OPTION(GOOD, num_profiled_cuda_contexts = 1);
  EXPECT_OPTION(INVALID, num_profiled_cuda_contexts = 2);
}

static void TestStates(void) {
  char line[256] = "";
  EXPECT(INVALID, IketProfilingSessionStart(NULL));
  EXPECT(INVALID, IketProfilingSessionStop(NULL));
  EXPECT(INVALID, IketProfilingSessionClearTraceData(NULL));
  EXPECT(INVALID, IketProfilingSessionSaveTrace(NULL, "trace.json"));
  EXPECT(INVALID, IketProfilingSessionDestroy(NULL));
  EXPECT(DUPLICATE, IketProfilingSessionStop(handle));
  EXPECT(GOOD, IketProfilingSessionClearTraceData(handle));
  EXPECT(INVALID, IketProfilingSessionSaveTrace(handle, NULL));
  EXPECT(IO, IketProfilingSessionSaveTrace(handle, ""));
  EXPECT(IO, IketProfilingSessionSaveTrace(handle, "no/such/folder/trace.json"));
  EXPECT(IO, IketProfilingSessionSaveTrace(handle, "."));

  /* Of nothing there is a trace of nothing. */
  EXPECT(GOOD, IketProfilingSessionSaveTrace(handle, "profiling_session_test.json"));
  FILE* const file = fopen("profiling_session_test.json", "r");
  EXPECT(1, file != NULL && fgets(line, sizeof line, file) != NULL && line[0] == '{');
  if (file != NULL) fclose(file);
  unlink("profiling_session_test.json");
}

int main(void) {
  IketProfilingSessionHandle other = NULL;
  uint32_t major = 0, minor = 9;
  EXPECT(GOOD, IketProfilingSessionGetApiVersion(&major, &minor));
  EXPECT(1, major == 1 && minor == 0);
  EXPECT(INVALID, IketProfilingSessionGetApiVersion(NULL, &minor));
  EXPECT(INVALID, IketProfilingSessionGetApiVersion(&major, NULL));
  EXPECT(INVALID, IketProfilingSessionCreate(NULL));
  EXPECT(GOOD, IketProfilingSessionCreate(&handle));
  EXPECT(GOOD, IketProfilingSessionCreate(&other));
  EXPECT(1, handle != NULL && other != NULL && handle != other);
  TestOptions();
  TestStates();
  EXPECT(GOOD, IketProfilingSessionDestroy(other));
  EXPECT(GOOD, IketProfilingSessionDestroy(handle));
  return faults != 0;
}
