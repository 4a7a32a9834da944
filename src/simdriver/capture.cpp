#include "simdriver/capture.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "simdriver/memory.h"

namespace iket::simdriver {
namespace {

std::atomic<uint64_t> g_next_capture{1};

// Guards Stream::capture, all captures, and the list of open ones.
std::mutex& CaptureMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<std::shared_ptr<Capture>>& OpenCaptures() {
  static auto* captures = new std::vector<std::shared_ptr<Capture>>;
  return *captures;
}
// Lets the many calls of a program that captures nothing pass without the mutex.
std::atomic<int> g_open_captures{0};

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

uint64_t ThisThread() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t kNumber = next.fetch_add(1);
  return kNumber;
}

// Whether an open capture minds an unsafe call of this thread's.
bool Minds(const Capture& capture) {
  if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == ThisThread()) return true;
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void Close(const std::shared_ptr<Capture>& capture) {
  for (const auto& [stream, tail] : capture->tails) stream->capture = nullptr;
  capture->tails.clear();
  std::erase(OpenCaptures(), capture);
  g_open_captures = static_cast<int>(OpenCaptures().size());
}

void Merge(std::vector<GraphNode*>& into, const std::vector<GraphNode*>& nodes) {
  for (GraphNode* node : nodes) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

// All nodes that must run before these, and these.
std::set<const GraphNode*> Ancestors(const std::vector<GraphNode*>& nodes) {
  std::set<const GraphNode*> seen;
  std::vector<const GraphNode*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  return seen;
}

bool Joined(const Capture& capture) {
  const auto origin = capture.tails.find(capture.origin);
  const auto reached = Ancestors(origin->second);
  for (const auto& [stream, tail] : capture.tails) {
    for (const GraphNode* node : tail) {
      if (reached.count(node) == 0) return false;
    }
  }
  return true;
}

// Adds the operation to the capture of a stream. The mutex is held.
CUresult AddToCapture(const std::shared_ptr<Stream>& stream, OperationPtr operation) {
  Capture& capture = *stream->capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*>& tail = capture.tails[stream];
  GraphNode& node = capture.graph->Add(std::move(operation), tail);
  tail = {&node};
  return CUDA_SUCCESS;
}

// Work for the legacy stream would wait for streams that capture. The mutex is held.
CUresult CheckLegacy(const Context& context) {
  for (const auto& capture : OpenCaptures()) {
    if (capture->context.get() != &context || !capture->origin->blocking()) continue;
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Issue(Context& context, CUstream handle, OperationPtr operation,
               std::shared_ptr<Completion>* done) {
  const auto stream = context.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto owner = stream->context.lock();
  if (owner == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (g_open_captures != 0) {
    const std::lock_guard lock(CaptureMutex());
    if (stream->capture != nullptr) return AddToCapture(stream, std::move(operation));
    if (stream->kind == Stream::Kind::kLegacy) {
      if (const CUresult refused = CheckLegacy(*owner); refused != CUDA_SUCCESS) return refused;
    }
  }
  auto submitted = owner->Submit(*stream, std::move(operation));
  if (done != nullptr) *done = std::move(submitted);
  return CUDA_SUCCESS;
}

CUresult IssueAndWait(Context& context, CUstream handle, OperationPtr operation) {
  if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
  const auto stream = context.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult refused = RefuseIfCapturing(stream); refused != CUDA_SUCCESS) return refused;
  std::shared_ptr<Completion> done;
  const CUresult issued = Issue(context, handle, std::move(operation), &done);
  if (issued != CUDA_SUCCESS) return issued;
  done->Wait();
  return context.error();
}

CUresult UnsafeDuringCapture() {
  if (g_open_captures == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : OpenCaptures()) {
    if (!Minds(*capture)) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult RefuseIfCapturing(const std::shared_ptr<Stream>& stream) {
  if (g_open_captures == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  if (stream->capture == nullptr) return CUDA_SUCCESS;
  stream->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUstreamCaptureMode ExchangeCaptureMode(CUstreamCaptureMode mode) {
  return std::exchange(t_mode, mode);
}

CUresult BeginCapture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                      std::shared_ptr<Graph> graph, std::vector<GraphNode*> dependencies) {
  const auto context = stream->context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(CaptureMutex());
  if (stream->kind == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = g_next_capture.fetch_add(1);
  capture->mode = mode;
  capture->thread = ThisThread();
  capture->into_program_graph = graph != nullptr;
  if (graph == nullptr) {
    graph = std::make_shared<Graph>();
    Graphs::Get().Add(graph);  // the program may add nodes of its own meanwhile
  }
  capture->graph = std::move(graph);
  capture->origin = stream;
  capture->context = context;
  capture->tails[stream] = std::move(dependencies);
  stream->capture = capture;
  OpenCaptures().push_back(std::move(capture));
  g_open_captures = static_cast<int>(OpenCaptures().size());
  return CUDA_SUCCESS;
}

CUresult EndCapture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* graph) {
  const std::lock_guard lock(CaptureMutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != ThisThread()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!Joined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  Close(capture);
  if (result == CUDA_SUCCESS) {
    *graph = capture->graph;
  } else if (!capture->into_program_graph) {
    Graphs::Get().Remove(Graphs::HandleOf(capture->graph.get()));
  }
  return result;
}

CaptureState StateOfCapture(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(CaptureMutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return {};
  return {.status = capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE,
          .id = capture->id,
          .graph = Graphs::HandleOf(capture->graph.get()),
          .dependencies = capture->tails[stream]};
}

CUresult UpdateCaptureDependencies(const std::shared_ptr<Stream>& stream, bool replace,
                                   const std::vector<GraphNode*>& dependencies) {
  const std::lock_guard lock(CaptureMutex());
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*>& tail = stream->capture->tails[stream];
  for (const GraphNode* node : dependencies) {
    if (!stream->capture->graph->Owns(*node)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (replace) tail.clear();
  Merge(tail, dependencies);
  return CUDA_SUCCESS;
}

CUresult RecordEvent(Context& context, CUstream handle, const std::shared_ptr<Event>& event,
                     bool external) {
  const auto stream = context.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto owner = stream->context.lock();
  if (owner == nullptr || owner->id != event->context_id) return CUDA_ERROR_INVALID_HANDLE;
  if (g_open_captures != 0) {
    const std::lock_guard lock(CaptureMutex());
    if (const auto capture = stream->capture; capture != nullptr) {
      if (external) return AddToCapture(stream, std::make_shared<EventRecordNode>(event));
      if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      event->SetCaptured({.capture = capture, .nodes = capture->tails[stream]});
      return CUDA_SUCCESS;
    }
    if (stream->kind == Stream::Kind::kLegacy) {
      if (const CUresult refused = CheckLegacy(*owner); refused != CUDA_SUCCESS) return refused;
    }
  }
  auto record = std::make_shared<Event::Record>();
  record->done = owner->Submit(*stream, std::make_shared<RecordOperation>(record));
  event->SetRecord(std::move(record));
  return CUDA_SUCCESS;
}

CUresult WaitForEvent(Context& context, CUstream handle, const std::shared_ptr<Event>& event,
                      bool external) {
  const auto stream = context.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto owner = stream->context.lock();
  if (owner == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const Event::Captured captured = event->captured();
  if (g_open_captures != 0) {
    const std::lock_guard lock(CaptureMutex());
    if (captured.capture != nullptr && !captured.capture->tails.empty()) {
      if (captured.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      if (stream->kind == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      if (stream->capture != nullptr && stream->capture != captured.capture) {
        captured.capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
      }
      stream->capture = captured.capture;
      Merge(captured.capture->tails[stream], captured.nodes);
      return CUDA_SUCCESS;
    }
    if (stream->capture != nullptr) {
      if (external) return AddToCapture(stream, std::make_shared<EventWaitNode>(event));
      if (event->record() == nullptr) return CUDA_SUCCESS;
      stream->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
  }
  const auto record = event->record();
  if (record == nullptr) return CUDA_SUCCESS;
  owner->Submit(*stream, std::make_shared<EmptyOperation>(), {record->done});
  return CUDA_SUCCESS;
}

}  // namespace iket::simdriver
