// launches.h: which handles are traced kernels, and the log of their launches.
//
// Launching is the hot path of other people's programs. A launch of a kernel that is known not to
// be traced costs here one probe of a hash table: no lock, no call, no allocation. One that is
// traced asks the driver for its context and the system for the time, and, in programs that capture
// streams, the driver whether its stream is.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <utility>

#include "inject/recording.h"
#include "session/launch_log.h"

namespace iket::inject {

// Remembers that a CUfunction or CUkernel (as the program may pass either) is the kernel `number`,
// or, after its library or module is gone, nothing: handles of an unloaded image may come back as
// others.
void RememberKernel(const void* handle, uint32_t number) noexcept;
void ForgetKernel(uint32_t number) noexcept;
// The same of one that is not traced: launches of it have nothing to wait for.
void RememberPlainKernel(const void* handle) noexcept;
// Code was unloaded: its handles may come back as those of traced kernels.
void ForgetPlainKernels() noexcept;
// `handle` is another one of the kernel that `known` is a handle of.
void RememberAs(const void* handle, const void* known) noexcept;

// A stream is about to be captured: from now on each launch is asked whether it runs.
void CaptureBegins() noexcept;

// From now on handles that no hook has given out are looked up with the driver, at each launch: the
// program calls some of its functions by the hooks, and some not.
void LookHandlesUp() noexcept;

// True if all launches of traced kernels so far were in the legacy default stream of their context,
// and are in the launch log.
bool OnlyLegacyStream() noexcept;
// A launch that may be of a traced kernel, but is not in the log.
void NoteUnloggedLaunch() noexcept;

// True if `handle` is a traced kernel.
bool LookUpKernel(const void* handle, uint32_t* number) noexcept;

struct LaunchShape {
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t cluster[3] = {};
  uint32_t dynamic_shared_bytes = 0;
  CUstream stream = nullptr;
  uint32_t flags = 0;  // session::LaunchFlag
};
LaunchShape ShapeOf(const CUlaunchConfig* config) noexcept;

// One launch on its way into the driver, counted from before it is logged until the call has
// returned.
class OnItsWay {
 public:
  OnItsWay() = default;  // none
  static OnItsWay Begin() noexcept;
  OnItsWay(OnItsWay&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
  OnItsWay& operator=(OnItsWay&& other) noexcept {
    std::swap(counts_, other.counts_);
    return *this;
  }
  ~OnItsWay();

 private:
  bool counts_ = false;
};
// True if no thread is launching a traced kernel: what is logged is with the driver.
bool NothingOnItsWay() noexcept;

// Before a launch of `handle`: arms the context and, for a traced kernel, writes an entry, which
// AfterLaunch completes.
struct Launching {
  // Not CUDA_SUCCESS: the kernel must not run, since its context could not be made ready.
  CUresult result = CUDA_SUCCESS;
  session::LaunchEntry* entry = nullptr;
  Turn turn{};
  OnItsWay on_its_way{};
};
Launching BeforeLaunch(const void* handle, const LaunchShape& shape) noexcept;
// An entry of now for a launch in this context, all of it but what is launched; null where nothing
// is logged. Set its `state` last.
// The turn that it has among all launches is kept in `turn`.
session::LaunchEntry* NewEntry(uint32_t context, CUstream stream, uint32_t flags,
                               Turn& turn) noexcept;
void AfterLaunch(session::LaunchEntry* entry, CUresult result) noexcept;

}  // namespace iket::inject
