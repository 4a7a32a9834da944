#include "simdriver/context.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "simdriver/default_stream.h"
#include "simdriver/lifetime.h"
#include "simdriver/memory.h"
#include "simdriver/module.h"

namespace iket::simdriver {
namespace {

std::atomic<uint64_t> g_next_context_id{1};
std::atomic<uint64_t> g_next_stream_id{1};

// Unlike std::thread::id, never used again.
uint64_t ThreadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t kNumber = next.fetch_add(1);
  return kNumber;
}

using Stack = std::vector<std::shared_ptr<Context>>;
thread_local Stack* t_stack = nullptr;

// The main thread's objects go before its exit handlers run, and those may still make calls: its
// stack stays.
struct StackEnd {
  ~StackEnd() {
    if (gettid() == getpid()) return;
    delete t_stack;
    t_stack = nullptr;
  }
};

Stack& ContextStack() {
  if (t_stack == nullptr) {
    t_stack = new Stack;
    thread_local const StackEnd kEnd;
  }
  return *t_stack;
}

struct Primary {
  std::mutex mutex;
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  int retained = 0;
};
Primary& ThePrimary() {
  static auto* primary = new Primary;
  return *primary;
}

void AddPending(const std::shared_ptr<Completion>& completion, Completions& to) {
  if (completion != nullptr && !completion->done()) to.push_back(completion);
}

}  // namespace

Context::Context(CUdevice on, unsigned with_flags, bool is_primary)
    : id(g_next_context_id.fetch_add(1)), device(on), primary(is_primary), flags(with_flags) {}

void Context::Fail(CUresult error) {
  CUresult none = CUDA_SUCCESS;
  error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
}

std::shared_ptr<Stream> Context::MakeStream(Stream::Kind kind, unsigned stream_flags,
                                            int priority) {
  auto stream = std::make_shared<Stream>();
  stream->kind = kind;
  stream->flags = stream_flags;
  stream->priority = priority;
  stream->id = g_next_stream_id.fetch_add(1);
  stream->context = weak_from_this();
  return stream;
}

std::shared_ptr<Stream> Context::PerThreadStream() {
  const std::lock_guard lock(submit_mutex_);
  auto& stream = per_thread_[ThreadNumber()];
  if (stream == nullptr) stream = MakeStream(Stream::Kind::kPerThread, CU_STREAM_DEFAULT, 0);
  return stream;
}

std::shared_ptr<Stream> Context::FindStream(CUstream handle) {
  const bool default_is_per_thread = PerThreadDefaultStream::active();
  if (handle == CU_STREAM_PER_THREAD || (handle == nullptr && default_is_per_thread)) {
    return PerThreadStream();
  }
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    const std::lock_guard lock(submit_mutex_);
    if (legacy_ == nullptr) legacy_ = MakeStream(Stream::Kind::kLegacy, CU_STREAM_DEFAULT, 0);
    return legacy_;
  }
  return Streams::Get().Find(handle);
}

std::shared_ptr<Stream> Context::CreateStream(unsigned stream_flags, int priority) {
  auto stream = MakeStream(Stream::Kind::kCreated, stream_flags, priority);
  const std::lock_guard lock(submit_mutex_);
  created_.push_back(stream);
  Streams::Get().Add(stream);
  return stream;
}

void Context::DestroyStream(const std::shared_ptr<Stream>& stream) {
  stream->queue->Close();
  const std::lock_guard lock(submit_mutex_);
  std::erase(created_, stream);
  std::erase_if(retired_, [](const auto& completion) { return completion->done(); });
  AddPending(stream->queue->last(), retired_);
}

std::shared_ptr<Completion> Context::Submit(Stream& stream, OperationPtr operation,
                                            Completions after) {
  auto done = std::make_shared<Completion>();
  const std::lock_guard lock(submit_mutex_);
  if (OperationPtr submitted = operation->Submitted()) operation = std::move(submitted);
  if (stream.kind == Stream::Kind::kLegacy) {
    AddPendingOfBlocking(after);
  } else if (stream.blocking() && legacy_ != nullptr) {
    AddPending(legacy_->queue->last(), after);
  }
  auto run = [self = shared_from_this(), operation = std::move(operation)] {
    if (ProcessEnds()) return;
    if (self->error() != CUDA_SUCCESS && !operation->runs_after_error()) return;
    const CUresult result = operation->Run();
    if (result != CUDA_SUCCESS) self->Fail(result);
  };
  stream.queue->Submit({.run = std::move(run), .after = std::move(after), .done = done});
  return done;
}

void Context::AddPendingOfBlocking(Completions& to) const {
  for (const auto& [thread, stream] : per_thread_) AddPending(stream->queue->last(), to);
  for (const auto& stream : created_) {
    if (stream->blocking()) AddPending(stream->queue->last(), to);
  }
}

Completions Context::Pending(const Stream& stream) {
  Completions pending;
  const std::lock_guard lock(submit_mutex_);
  AddPending(stream.queue->last(), pending);
  if (stream.kind == Stream::Kind::kLegacy) AddPendingOfBlocking(pending);
  return pending;
}

Completions Context::Pending() {
  Completions pending;
  const std::lock_guard lock(submit_mutex_);
  if (legacy_ != nullptr) AddPending(legacy_->queue->last(), pending);
  for (const auto& [thread, stream] : per_thread_) AddPending(stream->queue->last(), pending);
  for (const auto& stream : created_) AddPending(stream->queue->last(), pending);
  for (const auto& completion : retired_) AddPending(completion, pending);
  return pending;
}

void Context::Synchronize() {
  for (const auto& pending : Pending()) pending->Wait();
}

void Context::Close() {
  const std::lock_guard lock(submit_mutex_);
  if (legacy_ != nullptr) legacy_->queue->Close();
  for (const auto& [thread, stream] : per_thread_) stream->queue->Close();
  for (const auto& stream : created_) {
    stream->queue->Close();
    Streams::Get().Remove(Streams::HandleOf(stream.get()));
  }
  created_.clear();
}

std::shared_ptr<Context> CurrentContext() {
  const auto& stack = ContextStack();
  return stack.empty() ? nullptr : stack.back();
}

void SetCurrentContext(std::shared_ptr<Context> context) {
  auto& stack = ContextStack();
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(std::move(context));
}

void PushContext(std::shared_ptr<Context> context) { ContextStack().push_back(std::move(context)); }

std::shared_ptr<Context> PopContext() {
  auto& stack = ContextStack();
  if (stack.empty()) return nullptr;
  std::shared_ptr<Context> top = std::move(stack.back());
  stack.pop_back();
  return top;
}

void DestroyContext(const std::shared_ptr<Context>& context) {
  Contexts::Get().Remove(Contexts::HandleOf(context.get()));
  context->Synchronize();
  context->destroyed = true;
  context->Close();
  UnloadModulesOf(*context);
  FreeMemoryOf(*context);
}

std::shared_ptr<Context> RetainPrimaryContext() {
  Primary& primary = ThePrimary();
  const std::lock_guard lock(primary.mutex);
  if (primary.context == nullptr) {
    primary.context = std::make_shared<Context>(0, primary.flags, true);
    Contexts::Get().Add(primary.context);
  }
  ++primary.retained;
  return primary.context;
}

CUresult ReleasePrimaryContext() {
  Primary& primary = ThePrimary();
  const std::lock_guard lock(primary.mutex);
  if (primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--primary.retained == 0 && primary.context != nullptr) {
    DestroyContext(std::exchange(primary.context, nullptr));
  }
  return CUDA_SUCCESS;
}

void ResetPrimaryContext() {
  Primary& primary = ThePrimary();
  const std::lock_guard lock(primary.mutex);
  if (primary.context != nullptr) DestroyContext(std::exchange(primary.context, nullptr));
}

PrimaryState PrimaryContextState() {
  Primary& primary = ThePrimary();
  const std::lock_guard lock(primary.mutex);
  return {.flags = primary.flags, .active = primary.context != nullptr};
}

void SetPrimaryContextFlags(unsigned flags) {
  Primary& primary = ThePrimary();
  const std::lock_guard lock(primary.mutex);
  primary.flags = flags;
  if (primary.context != nullptr) primary.context->flags = flags;
}

}  // namespace iket::simdriver
