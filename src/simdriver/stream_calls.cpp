// Streams: made, asked, waited for; host functions and memory operations in them.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/lifetime.h"
#include "simdriver/memory.h"

namespace iket::simdriver {
namespace {

CUresult Create(CUstream* stream, unsigned flags, int priority) {
  return ContextCall([&](Context& context) {
    if (stream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int kept = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *stream = Streams::HandleOf(context.CreateStream(flags, kept).get());
    return CUDA_SUCCESS;
  });
}

CUresult Destroy(CUstream handle) {
  return Call([&] {
    const auto stream = Streams::Get().Find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = RefuseIfCapturing(stream); refused != CUDA_SUCCESS) return refused;
    Streams::Get().Remove(handle);
    if (const auto context = stream->context.lock()) context->DestroyStream(stream);
    return CUDA_SUCCESS;
  });
}

// `body` takes Context& and the stream.
template <typename Body>
CUresult StreamCall(CUstream handle, const Body& body) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto stream = context.FindStream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(context, stream);
  });
}

// A callback of cuStreamAddCallback, which hears of errors too.
class CallbackOperation : public Operation {
 public:
  CallbackOperation(std::weak_ptr<Context> context, CUstream stream, CUstreamCallback callback,
                    void* data)
      : context_(std::move(context)), stream_(stream), callback_(callback), data_(data) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
  CUresult Run() const override {
    const auto context = context_.lock();
    const InsideHostFunction inside;
    callback_(stream_, context == nullptr ? CUDA_SUCCESS : context->error(), data_);
    return CUDA_SUCCESS;
  }
  bool runs_after_error() const override { return true; }

 private:
  std::weak_ptr<Context> context_;
  CUstream stream_;
  CUstreamCallback callback_;
  void* data_;
};

// A word of memory that the stream writes, or waits for.
class WordOperation : public Operation {
 public:
  WordOperation(std::weak_ptr<Context> context, bool wait, CUdeviceptr address, uint64_t value,
                unsigned size, unsigned flags)
      : context_(std::move(context)),
        wait_(wait),
        address_(address),
        value_(value),
        size_(size),
        flags_(flags) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  CUresult Run() const override {
    for (;;) {
      std::byte* word = Addresses().Find(address_, size_);
      if (word == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
      const bool done = size_ == 4 ? Touch(reinterpret_cast<uint32_t*>(word))
                                   : Touch(reinterpret_cast<uint64_t*>(word));
      // Who would have written the word may have failed.
      const auto context = context_.lock();
      const bool hopeless = context == nullptr || context->error() != CUDA_SUCCESS;
      if (done || hopeless || ProcessEnds()) return CUDA_SUCCESS;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  template <typename Word>
  bool Touch(Word* at) const {
    const Word value = static_cast<Word>(value_);
    if (!wait_) {
      __atomic_store_n(at, value, __ATOMIC_RELEASE);
      return true;
    }
    const Word now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    switch (flags_ & 3) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::make_signed_t<Word>>(now - value) >= 0;
      case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
      case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
      default:
        return ~(now | value) != 0;
    }
  }

  std::weak_ptr<Context> context_;
  bool wait_;
  CUdeviceptr address_;
  uint64_t value_;
  unsigned size_;
  unsigned flags_;
};

CUresult Word(CUstream stream, bool wait, CUdeviceptr address, uint64_t value, unsigned size,
              unsigned flags) {
  return ContextCall([&](Context& context) {
    if (address % size != 0 || (flags & ~3u) != 0 || Addresses().Find(address, size) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Issue(context, stream,
                 std::make_shared<WordOperation>(context.weak_from_this(), wait, address, value,
                                                 size, flags));
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned options) { return Create(stream, options, 0); }
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned options, int priority) {
  return Create(stream, options, priority);
}
CUresult cuStreamDestroy(CUstream stream) { return Destroy(stream); }
CUresult cuStreamDestroy_v2(CUstream stream) { return Destroy(stream); }

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return StreamCall(handle, [&](Context&, const auto& stream) {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* options) {
  return StreamCall(handle, [&](Context&, const auto& stream) {
    if (options == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *options = stream->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return StreamCall(handle, [&](Context&, const auto& stream) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* owner) {
  return StreamCall(handle, [&](Context&, const auto& stream) {
    if (owner == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *owner = Contexts::HandleOf(stream->context.lock().get());
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* owner, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(handle, owner);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return StreamCall(handle, [&](Context& context, const auto&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context.device;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return StreamCall(handle, [&](Context& context, const auto& stream) {
    if (const CUresult refused = RefuseIfCapturing(stream); refused != CUDA_SUCCESS) return refused;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    if (stream->kind == Stream::Kind::kLegacy) {
      // What it would wait for, the program waits for too.
      context.Submit(*stream, std::make_shared<EmptyOperation>())->Wait();
    } else if (const auto last = context.Frontier(*stream)) {
      last->Wait();
    }
    const auto owner = stream->context.lock();
    return owner == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : owner->error();
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return StreamCall(handle, [&](Context& context, const auto& stream) {
    if (const CUresult refused = RefuseIfCapturing(stream); refused != CUDA_SUCCESS) return refused;
    if (const CUresult refused = UnsafeDuringCapture(); refused != CUDA_SUCCESS) return refused;
    if (stream->kind == Stream::Kind::kLegacy) {
      return context.Frontier().empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    const auto last = context.Frontier(*stream);
    return last == nullptr || last->done() ? context.error() : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                             unsigned reserved) {
  return StreamCall(handle, [&](Context& context, const auto& stream) {
    if (callback == nullptr || reserved != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = RefuseIfCapturing(stream); refused != CUDA_SUCCESS) return refused;
    return Issue(
        context, handle,
        std::make_shared<CallbackOperation>(context.weak_from_this(), handle, callback, data));
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return ContextCall([&](Context& context) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_HOST_NODE_PARAMS params{function, data};
    return Issue(context, stream, std::make_shared<HostOperation>(params));
  });
}

// --- words ---------------------------------------------------------------------------------------

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned options) {
  return Word(stream, false, address, value, 4, options);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned options) {
  return Word(stream, false, address, value, 8, options);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned options) {
  return Word(stream, true, address, value, 4, options);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned options) {
  return Word(stream, true, address, value, 8, options);
}

// --- attributes: kept, and without effect on a software device -----------------------------------

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return StreamCall(handle, [&](Context&, const auto& stream) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      value->priority = stream->priority;
      return CUDA_SUCCESS;
    }
    if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
      value->syncPolicy = CU_SYNC_POLICY_AUTO;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  return StreamCall(handle, [&](Context&, const auto&) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool harmless = attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
                          attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
                          attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    return harmless ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  });
}

// Priorities alone, which a program cannot change after all.
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return StreamCall(to, [&](Context& context, const auto&) {
    return context.FindStream(from) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // extern "C"
