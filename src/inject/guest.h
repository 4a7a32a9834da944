// guest.h: this process as a traced one: its account, its launch log, its way to the supervisor.
//
// Nothing exists until the first image with marks is met: a process that never loads one writes
// nothing and makes no file. All functions are safe from any thread, throw nothing, and after the
// first failure to write the account the process goes on untraced, said in one line.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "capture/writer.h"
#include "inject/say.h"
#include "ring/layout.h"
#include "session/finish.h"
#include "session/launch_log.h"
#include "session/message.h"

namespace iket::inject {

class Guest {
 public:
  // The guest of this process, made on first use; null when tracing is off (no driver that can
  // trace, no place to write, a child after fork).
  static Guest* Get() noexcept;
  // The same if it has been made already.
  static Guest* Existing() noexcept;
  // False if this process is not traced and will not be: its guest could not be made, or is its
  // parent's.
  static bool MayTrace() noexcept;

  const ring::Layout& layout() const { return layout_; }
  // Of device memory, the most that the rings of all contexts of one GPU may take.
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Rings are to lie in the host's memory.
  bool in_flight() const { return in_flight_; }

  // Appends to the account. A full disk costs data, never the program; the writer counts it.
  template <typename T>
  void Append(const T& row) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      if (writer_) Keep(writer_->Append(row));
    } catch (...) {
      Say("out of memory; the capture is incomplete");
    }
  }
  void Append(const capture::RingMoment& moment,
              std::span<const capture::RingContents> rings) noexcept;

  // Of what was appended, what could not be written.
  uint64_t chunks_lost() noexcept;

  // A note for the person who reads the capture; `kernel` is -1 or a kernel's number.
  void Note(capture::Severity severity, int32_t kernel, std::string text) noexcept;

  session::LaunchLog* launch_log() { return launch_log_ ? &*launch_log_ : nullptr; }

  // Hands ring memory to the supervisor; false when there is none or it does not answer.
  bool Share(const session::RingMemory& memory) noexcept;
  // Tells the supervisor, if there is one, that this process is about to end. `launches`: its rings
  // have been read into the account when all of so many launches had ended.
  void SayFarewell(std::optional<uint64_t> launches) noexcept;
  // The supervisor reads rings of this process while kernels run, and has to read the rest.
  bool is_streamed() const { return is_streamed_.load(std::memory_order_relaxed); }
  // True while somebody is there who finishes the capture with the rings that were shared. That
  // does not depend on the connection, which the program may have closed: it is made again.
  bool HasSupervisor() noexcept;
  // Asks the supervisor for something (session/control.h) in the name of this process, and waits.
  // Nothing if there is none, or if it cannot do it.
  std::optional<std::string> Ask(std::string_view request) noexcept;
  // True if the supervisor has ended before this process, and made the capture of what was there.
  bool AccountIsTaken() noexcept;

  // Makes a capture of what there is so far, by the way of a file beside it; the process goes on.
  // `append_rings` hands in what no account has; `part` as session::WriteSnapshot() has it.
  Result<session::FinishedCapture> WriteSnapshot(const std::string& path,
                                                 const session::AppendRings& append_rings,
                                                 const session::Times* part = nullptr) const;
  // A name for one in this process's folder. Error (kUsage): the folder is temporary.
  Result<std::string> NewSnapshotPath();

  // At the end of a process without a supervisor: makes the final capture. Where the folder is
  // temporary all that is in it goes instead.
  void Finish() noexcept;

  uint32_t TakeImageNumber() { return next_image_++; }
  uint32_t TakeContextNumber() { return next_context_++; }
  uint32_t TakeKernelNumbers(uint32_t count);

 private:
  Guest() = default;
  bool Open();
  bool OpenFolder();
  bool OpenAccount();
  void Discard();
  void Connect();
  void Keep(Result<void> result);

  std::mutex mutex_;
  int pid_ = 0;
  // The number in the names of this process's files, and what the supervisor knows it by: the pid,
  // unless files of that name are there. See session::NumberOf().
  uint32_t number_ = 0;
  std::string folder_;
  bool is_temporary_ = false;  // the folder
  std::atomic<uint32_t> next_snapshot_{1};
  ring::Layout layout_;
  uint64_t memory_bytes_ = 0;
  bool in_flight_ = false;
  std::atomic<bool> is_streamed_{false};
  std::optional<capture::Writer> writer_;
  std::optional<session::LaunchLog> launch_log_;
  std::mutex socket_mutex_;
  Descriptor socket_;
  std::string socket_path_;  // empty: there was no supervisor from the beginning
  pid_t supervisor_ = 0;     // its pid; 0: unknown
  bool supervisor_gone_ = true;
  std::atomic<uint32_t> next_image_{0};
  std::atomic<uint32_t> next_context_{0};
  std::atomic<uint32_t> next_kernel_{0};
};

}  // namespace iket::inject
