// context.h: contexts, the streams in them, and which of them is current in a thread.
//
// Submission order is what CUDA documents: the legacy default stream waits for all work submitted
// before to blocking streams of its context, and they wait for it. A failed operation makes its
// error the context's: later work of the context is dropped, and calls return the error until the
// context is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simdriver/cuda_api.h"
#include "simdriver/handles.h"
#include "simdriver/limits.h"
#include "simdriver/operation.h"
#include "simdriver/work_queue.h"

namespace iket::simdriver {

class Capture;
class Context;
class MemoryPool;

struct Stream {
  enum class Kind { kLegacy, kPerThread, kCreated };
  Kind kind = Kind::kCreated;
  unsigned flags = CU_STREAM_DEFAULT;
  int priority = 0;
  uint64_t id = 0;
  std::weak_ptr<Context> context;
  std::shared_ptr<WorkQueue> queue = std::make_shared<WorkQueue>();
  std::shared_ptr<Capture> capture;  // guarded by the mutex of capture.h

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};
using Streams = HandleTable<Stream, CUstream>;

class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(CUdevice device, unsigned flags, bool primary);

  const uint64_t id;
  const CUdevice device;
  const bool primary;
  std::atomic<unsigned> flags;
  std::atomic<bool> destroyed{false};

  CUresult error() const { return error_.load(std::memory_order_acquire); }
  // The first error stays.
  void Fail(CUresult error);

  // 0 and the two special handles are this context's (and this thread's) default streams. Null if
  // there is no such stream.
  std::shared_ptr<Stream> FindStream(CUstream handle);
  std::shared_ptr<Stream> CreateStream(unsigned stream_flags, int priority);
  // Waits for nothing: queued work goes on.
  void DestroyStream(const std::shared_ptr<Stream>& stream);

  // Runs it after what was submitted to the stream before, and after `after`.
  std::shared_ptr<Completion> Submit(Stream& stream, OperationPtr operation,
                                     Completions after = {});
  // What is still to be done of a stream; for the legacy stream, also of the blocking ones.
  Completions Pending(const Stream& stream);
  // Of all streams, those included that were destroyed with work in them.
  Completions Pending();
  void Synchronize();

  // Ends the streams, after their work.
  void Close();

  const std::shared_ptr<Limits> limits = std::make_shared<Limits>();
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  std::mutex mutex;  // guards cache_config

 private:
  std::shared_ptr<Stream> MakeStream(Stream::Kind kind, unsigned stream_flags, int priority);
  std::shared_ptr<Stream> PerThreadStream();
  void AddPendingOfBlocking(Completions& to) const;  // submit_mutex_ is held

  std::atomic<CUresult> error_{CUDA_SUCCESS};
  std::mutex submit_mutex_;  // guards the order of submissions and what follows
  std::shared_ptr<Stream> legacy_;
  std::map<uint64_t, std::shared_ptr<Stream>> per_thread_;  // by number of the thread
  std::vector<std::shared_ptr<Stream>> created_;
  Completions retired_;  // last work of destroyed streams
};
using Contexts = HandleTable<Context, CUcontext>;

// The current context of this thread; null if there is none.
std::shared_ptr<Context> CurrentContext();
// The top of this thread's stack; null empties it of its top.
void SetCurrentContext(std::shared_ptr<Context> context);
void PushContext(std::shared_ptr<Context> context);
// Null if the stack is empty.
std::shared_ptr<Context> PopContext();

// Waits for the context's work, frees what is in it and takes its handle away.
void DestroyContext(const std::shared_ptr<Context>& context);

// The device's primary context: counted, and made anew after the last release.
std::shared_ptr<Context> RetainPrimaryContext();
CUresult ReleasePrimaryContext();
void ResetPrimaryContext();
struct PrimaryState {
  unsigned flags = 0;
  bool active = false;
};
PrimaryState PrimaryContextState();
void SetPrimaryContextFlags(unsigned flags);

}  // namespace iket::simdriver
