// Events: made, recorded, waited for, and the time between two of them.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/event.h"

namespace iket::simdriver {
namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult Destroy(CUevent handle) {
  return Call([&] {
    return Events::Get().Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

// The error of an event's context, if that still lives; also of work that failed meanwhile.
template <typename Body>
CUresult EventCall(CUevent handle, const Body& body) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto event = Events::Get().Find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(context, event);
  });
}

CUresult Record(CUevent handle, CUstream stream, unsigned flags) {
  return EventCall(handle, [&](Context& context, const auto& event) {
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    return RecordEvent(context, stream, event, flags != 0);
  });
}

CUresult Elapsed(float* ms, CUevent from, CUevent to) {
  return ContextCall([&](Context& context) {
    if (ms == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto begin = Events::Get().Find(from);
    const auto end = Events::Get().Find(to);
    if (begin == nullptr || end == nullptr || !begin->timed() || !end->timed()) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (begin->context_id != end->context_id) return CUDA_ERROR_INVALID_HANDLE;
    const auto first = begin->record();
    const auto last = end->record();
    if (first == nullptr || last == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!first->done->done() || !last->done->done()) return CUDA_ERROR_NOT_READY;
    const double ns = static_cast<double>(last->time_ns) - static_cast<double>(first->time_ns);
    *ms = static_cast<float>(ns / 1e6);
    return context.error();
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned options) {
  return ContextCall([&](Context& context) {
    if (event == nullptr || (options & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool shared = (options & CU_EVENT_INTERPROCESS) != 0;
    if (shared && (options & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
    *event = Events::Get().Add(std::make_shared<Event>(options, context.id));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent event) { return Destroy(event); }
CUresult cuEventDestroy_v2(CUevent event) { return Destroy(event); }

CUresult cuEventRecord(CUevent event, CUstream stream) { return Record(event, stream, 0); }
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned options) {
  return Record(event, stream, options);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned options) {
  return EventCall(handle, [&](Context& context, const auto& event) {
    if ((options & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    return WaitForEvent(context, stream, event, options != 0);
  });
}

CUresult cuEventQuery(CUevent handle) {
  return EventCall(handle, [&](Context& context, const auto& event) {
    if (event->captured().capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    const auto record = event->record();
    if (record != nullptr && !record->done->done()) return CUDA_ERROR_NOT_READY;
    return context.error();
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return EventCall(handle, [&](Context& context, const auto& event) {
    if (event->captured().capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    if (const auto record = event->record()) record->done->Wait();
    return context.error();
  });
}

CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) { return Elapsed(ms, from, to); }
CUresult cuEventElapsedTime_v2(float* ms, CUevent from, CUevent to) {
  return Elapsed(ms, from, to);
}

}  // extern "C"
