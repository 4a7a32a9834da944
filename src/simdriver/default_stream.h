// default_stream.h: which stream the handle 0 means in this thread's call.
#pragma once

namespace iket::simdriver {

// While it lives, stream 0 of this thread is its per-thread default stream: the *_ptsz and *_ptds
// functions are the plain ones in this scope.
class PerThreadDefaultStream {
 public:
  PerThreadDefaultStream() noexcept : before_(active_) { active_ = true; }
  PerThreadDefaultStream(const PerThreadDefaultStream&) = delete;
  PerThreadDefaultStream& operator=(const PerThreadDefaultStream&) = delete;
  ~PerThreadDefaultStream() { active_ = before_; }

  static bool active() noexcept { return active_; }

 private:
  static inline thread_local bool active_ = false;
  bool before_;
};

}  // namespace iket::simdriver
