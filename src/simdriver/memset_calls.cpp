// Memsets. Those without a stream go into the default stream; none of them waits.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/copy.h"

namespace iket::simdriver {
namespace {

CUresult Set(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
             size_t height, CUstream stream) {
  return ContextCall([&](Context& context) {
    const CUDA_MEMSET_NODE_PARAMS params{.dst = to,
                                         .pitch = pitch,
                                         .value = value,
                                         .elementSize = element,
                                         .width = width,
                                         .height = height};
    if (const CUresult bad = CheckMemset(params); bad != CUDA_SUCCESS) return bad;
    return Issue(context, stream, std::make_shared<MemsetOperation>(params));
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return Set(to, 0, value, 1, count, 1, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return Set(to, 0, value, 2, count, 1, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return Set(to, 0, value, 4, count, 1, nullptr);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return Set(to, pitch, value, 1, width, height, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return Set(to, pitch, value, 2, width, height, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                          size_t height) {
  return Set(to, pitch, value, 4, width, height, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return Set(to, 0, value, 1, count, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return Set(to, 0, value, 2, count, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return Set(to, 0, value, 4, count, 1, stream);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return Set(to, pitch, value, 1, width, height, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return Set(to, pitch, value, 2, width, height, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream stream) {
  return Set(to, pitch, value, 4, width, height, stream);
}

}  // extern "C"
