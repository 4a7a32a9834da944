// jit_options.h: the JIT options of a load call, for attempts of ours in its place.
//
// The driver writes to what such options name: logs, their sizes, times. Here it writes to copies,
// and only GiveBack hands them to the caller: until then a failed attempt leaves no trace, and the
// caller's own call can be made as if nothing had been.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace iket::inject {

class JitOptions {
 public:
  enum class Attempt { kLoad, kCompileAndLoad };
  struct List {
    std::vector<CUjit_option> options;
    std::vector<void*> values;
    std::vector<size_t> source;  // indices of the caller's
    unsigned count() const { return static_cast<unsigned>(options.size()); }
  };

  JitOptions(Attempt attempt, unsigned count, const CUjit_option* options, void** values);
  // The driver holds pointers into it.
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;

  // For cuLinkCreate.
  List& link() { return link_; }
  // For the load call; where something was compiled before, without what asks for logs and times.
  List& load() { return load_; }

  // Writes what the driver answered to where the caller wants it.
  void GiveBack() const noexcept;

 private:
  struct Log {
    char* to = nullptr;  // the caller's buffer
    std::unique_ptr<char[]> copy;
    size_t size = 0;
  };
  void CopyLog(CUjit_option buffer, CUjit_option size);

  void** const values_;  // the caller's
  List link_, load_;
  List& answered_;  // of which the driver's answers are the caller's
  std::vector<Log> logs_;
};

}  // namespace iket::inject
