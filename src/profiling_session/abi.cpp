// The functions of iket/iket_profiling_session.h. Each holds the one lock of all sessions, and lets
// nothing through but a code. A handle that was never given out, or was given back, is an invalid
// argument.
#include <iket/iket_profiling_session.h>

#include <memory>
#include <mutex>
#include <vector>

#include "inject/never_destroyed.h"
#include "inject/own_process.h"
#include "inject/say.h"
#include "profiling_session/options.h"
#include "profiling_session/session.h"

using iket::profiling_session::Session;

struct iket::IketProfilingSessionHandleImpl {
  Session session;
};

namespace {

struct Handles {
  std::mutex mutex;
  std::vector<std::unique_ptr<iket::IketProfilingSessionHandleImpl>> all;
};
Handles& Get() noexcept { return iket::inject::NeverDestroyed<Handles>(); }

// What `act` returns, called alone. A child of fork() has its parent's lock, handles and GPU, and
// may use none of them.
template <typename Act>
uint32_t Alone(const Act& act) noexcept {
  if (!iket::inject::IsOwnProcess()) return IKET_PROFILING_SESSION_INVALID_STATE;
  try {
    const std::lock_guard lock(Get().mutex);
    return act(Get().all);
  } catch (...) {
    iket::inject::Say("out of memory; a call of the profiling session fails");
    return IKET_PROFILING_SESSION_INTERNAL_ERROR;
  }
}

// The same with the session of a handle.
template <typename Act>
uint32_t With(iket::IketProfilingSessionHandle handle, const Act& act) noexcept {
  if (handle == nullptr) return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  return Alone([&](auto& all) -> uint32_t {
    for (auto& one : all) {
      if (one.get() == handle) return act(one->session);
    }
    return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  });
}

// When the library is loaded.
__attribute__((constructor)) void Load() noexcept {
  try {
    iket::profiling_session::Prepare();
  } catch (...) {
    iket::inject::Say("out of memory; this process cannot be profiled");
  }
}

}  // namespace

namespace iket {
extern "C" {

uint32_t IketProfilingSessionGetApiVersion(uint32_t* major, uint32_t* minor) {
  if (major == nullptr || minor == nullptr) return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  *major = IKET_PROFILING_SESSION_API_VERSION_MAJOR;
  *minor = IKET_PROFILING_SESSION_API_VERSION_MINOR;
  return IKET_PROFILING_SESSION_SUCCESS;
}

uint32_t IketProfilingSessionOptionsInit(IketProfilingSessionOptions* options) {
  return profiling_session::Init(options);
}

uint32_t IketProfilingSessionCreate(IketProfilingSessionHandle* session) {
  if (session == nullptr) return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  return Alone([&](auto& all) {
    all.push_back(std::make_unique<IketProfilingSessionHandleImpl>());
    *session = all.back().get();
    return IKET_PROFILING_SESSION_SUCCESS;
  });
}

uint32_t IketProfilingSessionDestroy(IketProfilingSessionHandle session) {
  if (session == nullptr) return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  return Alone([&](auto& all) {
    return std::erase_if(all, [&](const auto& one) { return one.get() == session; }) == 1
               ? IKET_PROFILING_SESSION_SUCCESS
               : IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  });
}

uint32_t IketProfilingSessionSetOptions(IketProfilingSessionHandle session,
                                        const IketProfilingSessionOptions* options) {
  return With(session, [&](Session& one) { return one.SetOptions(options); });
}

uint32_t IketProfilingSessionStart(IketProfilingSessionHandle session) {
  return With(session, [](Session& one) { return one.Start(); });
}

uint32_t IketProfilingSessionStop(IketProfilingSessionHandle session) {
  return With(session, [](Session& one) { return one.Stop(); });
}

uint32_t IketProfilingSessionClearTraceData(IketProfilingSessionHandle session) {
  return With(session, [](Session& one) { return one.Clear(); });
}

uint32_t IketProfilingSessionSaveTrace(IketProfilingSessionHandle session,
                                       const char* output_path) {
  if (output_path == nullptr) return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  return With(session, [&](Session& one) { return one.Save(output_path); });
}

// What the driver calls in the library that CUDA_INJECTION64_PATH names; 0 would be a failure of
// its own. It does nothing: Start() says why.
__attribute__((visibility("default"))) int InitializeInjection() { return 1; }

}  // extern "C"
}  // namespace iket
