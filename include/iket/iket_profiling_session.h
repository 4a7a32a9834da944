// SPDX-License-Identifier: Apache-2.0
//
// iket_profiling_session.h: a program profiles itself, start to stop, without `iket profile` around
// it.
//
//   IketProfilingSessionHandle session;
//   IketProfilingSessionCreate(&session);
//   IketProfilingSessionStart(session);
//   ... launches ...
//   IketProfilingSessionStop(session);
//   IketProfilingSessionSaveTrace(session, "step.trace.json");
//   IketProfilingSessionDestroy(session);
//
// The C interface 1.0 that NVIDIA's CuTe DSL wheels (4.8) bring under this name: the same
// functions, numbers and layout, so that a program built with either header runs with either
// libiket_injection.so. What ours does where the two could differ is in docs/profiling-session.md.
//
// Link it (-liket_injection, from lib/iket-session; before or after -lcuda), or open it with
// dlopen() before the first use of CUDA: code that was loaded before it came cannot be profiled.
//
// C11 and C++17; in C++ all names are in namespace iket, or in IKET_NAMESPACE if that is defined.
// Every function may be called from any thread, one waits for the other, but not from a callback of
// the driver; none throws, ends the program or prints to standard output. What goes wrong is said
// in one line on standard error.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Of this header. What the library has, IketProfilingSessionGetApiVersion() says: another major
// version is another interface, a greater minor version has more.
#define IKET_PROFILING_SESSION_API_VERSION_MAJOR UINT32_C(1)
#define IKET_PROFILING_SESSION_API_VERSION_MINOR UINT32_C(0)

// What every function returns. Those marked with - are never returned by ours.
#define IKET_PROFILING_SESSION_SUCCESS UINT32_C(0)
#define IKET_PROFILING_SESSION_INVALID_ARGUMENT UINT32_C(1)
#define IKET_PROFILING_SESSION_FEATURE_NOT_SUPPORTED UINT32_C(2)  // it came too late for this
#define IKET_PROFILING_SESSION_NOT_IMPLEMENTED UINT32_C(3)        // -
#define IKET_PROFILING_SESSION_NOT_INSTRUMENTED UINT32_C(4)       // this process cannot be profiled
#define IKET_PROFILING_SESSION_UNKNOWN_ERROR UINT32_C(5)          // -
#define IKET_PROFILING_SESSION_INVALID_EVENT_RECORD UINT32_C(6)   // -
#define IKET_PROFILING_SESSION_NO_INSTRUMENT_CONFIG UINT32_C(7)   // -
#define IKET_PROFILING_SESSION_INVALID_STATE UINT32_C(8)          // not while a session is active
#define IKET_PROFILING_SESSION_DUPLICATE_OPERATION UINT32_C(9)    // it is started, or stopped
#define IKET_PROFILING_SESSION_IO_ERROR UINT32_C(13)              // a file
#define IKET_PROFILING_SESSION_INTERNAL_ERROR UINT32_C(14)        // memory, or the driver

#ifndef IKET_API
#ifdef _WIN32
#define IKET_API __stdcall
#else
#define IKET_API
#endif
#endif

#ifdef __GNUC__
#define IKET_PROFILING_SESSION_C_EXPORT __attribute__((visibility("default")))
#else
#define IKET_PROFILING_SESSION_C_EXPORT
#endif

#ifdef __cplusplus
#ifndef IKET_NAMESPACE
#define IKET_NAMESPACE iket
#endif
namespace IKET_NAMESPACE {
extern "C" {
#endif

typedef uint32_t IketProfilingSessionResult;

// IketProfilingSessionOptions::flags. The first and the third exclude each other.
#define IKET_PROFILING_SESSION_ENABLE_CLUSTER (UINT32_C(1) << 0)        // of each grid this one
#define IKET_PROFILING_SESSION_DEFER_TRACE_READBACK (UINT32_C(1) << 1)  // ours always does
#define IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY (UINT32_C(1) << 2)    // begins, ends, no event

typedef uint32_t IketProfilingSessionLogLevelValue;
#define IKET_PROFILING_SESSION_LOG_ERROR UINT32_C(0)
#define IKET_PROFILING_SESSION_LOG_WARN UINT32_C(1)
#define IKET_PROFILING_SESSION_LOG_INFO UINT32_C(2)

// The place of a cluster among those of its grid; without clusters, of a CTA.
typedef struct IketProfilingSessionClusterIndex {
  uint32_t x;
  uint16_t y;
  uint16_t z;
} IketProfilingSessionClusterIndex;

// What a session is to do. Make it zero, set struct_size, have IketProfilingSessionOptionsInit()
// fill in the rest, and then change what is to be otherwise. Later versions have more behind it;
// these 56 bytes stay as they are.
typedef struct IketProfilingSessionOptions {
  uint32_t struct_size;  // sizeof(IketProfilingSessionOptions), or more
  uint32_t flags;
  uint64_t max_ts_per_warp;                   // 1 .. 2^32 - 1; ours needs no such bound: no effect
  uint64_t device_buffer_size;                // not 0; the same
  const void* const* profiled_cuda_contexts;  // CUcontext of those that count; read, not kept
  uint64_t num_profiled_cuda_contexts;        // 0: all contexts
  IketProfilingSessionClusterIndex enabled_cluster;
  IketProfilingSessionLogLevelValue log_level;
} IketProfilingSessionOptions;

typedef struct IketProfilingSessionHandleImpl* IketProfilingSessionHandle;

// The version of the library.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionGetApiVersion(uint32_t* major, uint32_t* minor);

// Fills in what is usual; struct_size must be set, and stays.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionOptionsInit(IketProfilingSessionOptions* options);

// A session that is not active, with the usual options.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionCreate(IketProfilingSessionHandle* session);

// Ends it; stops it before, if it is active. What was not saved is gone.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionDestroy(IketProfilingSessionHandle session);

// Replaces its options, while it is not active.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API IketProfilingSessionSetOptions(
    IketProfilingSessionHandle session, const IketProfilingSessionOptions* options);

// From now on launches are recorded. One session of a process may be active.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionStart(IketProfilingSessionHandle session);

// From now on they are not; waits for the kernels that were launched and takes what they recorded.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionStop(IketProfilingSessionHandle session);

// Forgets what it has recorded, while it is not active.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionClearTraceData(IketProfilingSessionHandle session);

// Writes what was recorded since it was made or cleared to this file, in the schema of run-iket's
// .trace.json whatever the name is; an existing file is replaced. It stays recorded.
IKET_PROFILING_SESSION_C_EXPORT IketProfilingSessionResult IKET_API
IketProfilingSessionSaveTrace(IketProfilingSessionHandle session, const char* output_path);

#ifdef __cplusplus
}  // extern "C"
}  // namespace IKET_NAMESPACE
#endif
