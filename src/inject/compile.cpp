#include "inject/compile.h"

#include <string>

#include "inject/driver.h"

namespace iket::inject {
namespace {

// A context to compile in where the program has none current, for as long as this lives.
class ContextToCompileIn {
 public:
  ContextToCompileIn() {
    CUcontext current = nullptr;
    result_ = Real().CtxGetCurrent(&current);
    if (result_ != CUDA_SUCCESS || current != nullptr) return;
    if (result_ = Real().DeviceGet(&device_, 0); result_ != CUDA_SUCCESS) return;
    if (result_ = Real().PrimaryCtxRetain(&current, device_); result_ != CUDA_SUCCESS) return;
    retained_ = true;
    result_ = Real().CtxPushCurrent(current);
    pushed_ = result_ == CUDA_SUCCESS;
  }
  ContextToCompileIn(const ContextToCompileIn&) = delete;
  ContextToCompileIn& operator=(const ContextToCompileIn&) = delete;
  ~ContextToCompileIn() {
    CUcontext popped = nullptr;
    if (pushed_) Real().CtxPopCurrent(&popped);
    if (retained_) Real().PrimaryCtxRelease(device_);
  }
  CUresult result() const { return result_; }

 private:
  CUresult result_;
  CUdevice device_ = 0;
  bool retained_ = false, pushed_ = false;
};

class Linker {
 public:
  explicit Linker(JitOptions& options) {
    JitOptions::List& link = options.link();
    result_ = Real().LinkCreate(link.count(), link.options.data(), link.values.data(), &state_);
    if (result_ != CUDA_SUCCESS) state_ = nullptr;
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;
  ~Linker() {
    if (state_ != nullptr) Real().LinkDestroy(state_);
  }

  void Add(const CompilerInput& input) {
    if (result_ != CUDA_SUCCESS) return;
    // PTX ends with a NUL, and the driver does not write to what it is given.
    std::string text;
    void* data = const_cast<std::byte*>(input.bytes.data());
    size_t size = input.bytes.size();
    if (input.type == CU_JIT_INPUT_PTX) {
      text.assign(reinterpret_cast<const char*>(input.bytes.data()), size);
      data = text.data();
      size = text.size() + 1;
    }
    result_ = Real().LinkAddData(state_, input.type, data, size, "iket", 0, nullptr, nullptr);
  }

  std::vector<std::byte> Complete() {
    void* cubin = nullptr;
    size_t size = 0;
    if (result_ == CUDA_SUCCESS) result_ = Real().LinkComplete(state_, &cubin, &size);
    if (result_ != CUDA_SUCCESS || cubin == nullptr) return {};
    const auto* bytes = static_cast<const std::byte*>(cubin);
    return {bytes, bytes + size};  // the linker's own end with it
  }

  CUresult result() const { return result_; }

 private:
  CUlinkState state_ = nullptr;
  CUresult result_;
};

}  // namespace

Result<std::vector<std::byte>> Compile(std::span<const CompilerInput> inputs, JitOptions& options) {
  const RelaxedCapture relaxed;
  const auto failed = [](const char* what, CUresult result) {
    return Fail(ErrorKind::kSystem, "{}: {}", what, NameOf(result));
  };
  const ContextToCompileIn context;
  if (context.result() != CUDA_SUCCESS) return failed("no context to compile in", context.result());
  Linker linker(options);
  for (const CompilerInput& input : inputs) linker.Add(input);
  std::vector<std::byte> code = linker.Complete();
  if (linker.result() != CUDA_SUCCESS) return failed("the driver's linker", linker.result());
  if (code.empty()) return Fail(ErrorKind::kSystem, "the driver's linker made nothing");
  return code;
}

}  // namespace iket::inject
