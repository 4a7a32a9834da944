// session.h: the sessions of this process: which one is active, and what each has recorded.
//
// Code with marks is patched whenever it is loaded, since a session may start at any time; what it
// records goes nowhere while none is active (inject/recording.h). A session is a list of times;
// when it stops, the rings are read into the account of the process, and its trace is what the
// account has of these times.
//
// Functions are called one at a time (abi.cpp holds the lock), may throw std::bad_alloc, and return
// one of IKET_PROFILING_SESSION_*; but for SUCCESS, what the code alone does not say has been said
// on standard error.
#pragma once

#include <iket/iket_profiling_session.h>

#include <string>

#include "profiling_session/options.h"
#include "session/finish.h"

namespace iket::profiling_session {

// Makes this process ready, once, when the library is loaded.
void Prepare();

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();  // stops it

  IketProfilingSessionResult SetOptions(const IketProfilingSessionOptions* untrusted);
  IketProfilingSessionResult Start();
  IketProfilingSessionResult Stop();
  IketProfilingSessionResult Clear();
  IketProfilingSessionResult Save(const std::string& path);

 private:
  void Log(uint32_t level, const std::string& text) const;

  Options options_;
  session::Times times_;  // the last one is open while the session is active
};

}  // namespace iket::profiling_session
