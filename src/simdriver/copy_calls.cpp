// Copies between device and host, and within each; plain, two- and three-dimensional.
//
// What a caller may rely on is what CUDA documents: pageable host memory that a copy reads may be
// changed as soon as the call returns, and pageable host memory that it writes is written by then;
// pinned host memory is used when the stream comes to the copy.
#include <cstring>
#include <vector>

#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/copy.h"
#include "simdriver/memory.h"

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

namespace iket::simdriver {
namespace {

enum class When { kNow, kInStream };

bool Pageable(uint64_t address) { return !FindAllocation(address).has_value(); }

bool Capturing(Context& context, CUstream handle) {
  const auto stream = context.FindStream(handle);
  return stream != nullptr && StateOfCapture(stream).status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// A shape whose source rows, of pageable host memory, are replaced by a copy of them.
std::shared_ptr<const void> Stage(CopyShape& shape) {
  auto rows = std::make_shared<std::vector<std::byte>>(shape.width * shape.height * shape.depth);
  std::byte* to = rows->data();
  for (uint64_t z = 0; z < shape.depth; ++z) {
    for (uint64_t y = 0; y < shape.height; ++y, to += shape.width) {
      const uint64_t from = shape.from.address + (z * shape.from.rows + y) * shape.from.pitch;
      std::memcpy(to, reinterpret_cast<const void*>(from), shape.width);
    }
  }
  shape.from.address = reinterpret_cast<uint64_t>(rows->data());
  shape.from.pitch = shape.width;
  shape.from.rows = shape.height;
  return rows;
}

CUresult Copy(const CUDA_MEMCPY3D& asked, CUstream stream, When when) {
  return ContextCall([&](Context& context) {
    CopyShape shape;
    if (const CUresult bad = ShapeOfCopy(asked, &shape); bad != CUDA_SUCCESS) return bad;
    if (when == When::kNow) {
      return IssueAndWait(context, stream, std::make_shared<CopyOperation>(shape, asked));
    }
    std::shared_ptr<const void> held;
    bool wait = false;
    if (shape.height > 0 && !Capturing(context, stream)) {
      if (!shape.from.on_device && Pageable(shape.from.address)) held = Stage(shape);
      wait = !shape.to.on_device && Pageable(shape.to.address);
    }
    std::shared_ptr<Completion> done;
    const CUresult issued = Issue(
        context, stream, std::make_shared<CopyOperation>(shape, asked, std::move(held)), &done);
    if (issued != CUDA_SUCCESS || !wait || done == nullptr) return issued;
    done->Wait();
    return context.error();
  });
}

CUDA_MEMCPY3D FromPeer(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peer.srcXInBytes;
  copy.srcY = peer.srcY;
  copy.srcZ = peer.srcZ;
  copy.srcLOD = peer.srcLOD;
  copy.srcMemoryType = peer.srcMemoryType;
  copy.srcHost = peer.srcHost;
  copy.srcDevice = peer.srcDevice;
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstLOD = peer.dstLOD;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  return copy;
}

CUDA_MEMCPY3D FromFlat(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = flat.srcXInBytes;
  copy.srcY = flat.srcY;
  copy.srcMemoryType = flat.srcMemoryType;
  copy.srcHost = flat.srcHost;
  copy.srcDevice = flat.srcDevice;
  copy.srcPitch = flat.srcPitch;
  copy.dstXInBytes = flat.dstXInBytes;
  copy.dstY = flat.dstY;
  copy.dstMemoryType = flat.dstMemoryType;
  copy.dstHost = flat.dstHost;
  copy.dstDevice = flat.dstDevice;
  copy.dstPitch = flat.dstPitch;
  copy.WidthInBytes = flat.WidthInBytes;
  copy.Height = flat.Height;
  copy.Depth = 1;
  return copy;
}

CUresult CopyFlat(const CUDA_MEMCPY2D* flat, CUstream stream, When when) {
  return flat == nullptr ? CUDA_ERROR_INVALID_VALUE : Copy(FromFlat(*flat), stream, when);
}
CUresult CopySolid(const CUDA_MEMCPY3D* solid, CUstream stream, When when) {
  return solid == nullptr ? CUDA_ERROR_INVALID_VALUE : Copy(*solid, stream, when);
}

CUresult ToDevice(CUdeviceptr to, const void* from, size_t bytes, CUstream stream, When when) {
  return Copy(PlainCopy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST,
                        reinterpret_cast<uint64_t>(from), bytes),
              stream, when);
}
CUresult ToHost(void* to, CUdeviceptr from, size_t bytes, CUstream stream, When when) {
  return Copy(PlainCopy(CU_MEMORYTYPE_HOST, reinterpret_cast<uint64_t>(to), CU_MEMORYTYPE_DEVICE,
                        from, bytes),
              stream, when);
}
CUresult OnDevice(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, When when) {
  return Copy(PlainCopy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes), stream, when);
}
// Each address says itself what it is.
CUresult Unified(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, When when) {
  return Copy(PlainCopy(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes), stream,
              when);
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Unified(to, from, bytes, nullptr, When::kNow);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Unified(to, from, bytes, stream, When::kInStream);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return ToDevice(to, from, bytes, nullptr, When::kNow);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return ToDevice(to, from, bytes, stream, When::kInStream);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return ToHost(to, from, bytes, nullptr, When::kNow);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return ToHost(to, from, bytes, stream, When::kInStream);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return OnDevice(to, from, bytes, nullptr, When::kInStream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return OnDevice(to, from, bytes, stream, When::kInStream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return OnDevice(to, from, bytes, nullptr, When::kInStream);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return OnDevice(to, from, bytes, stream, When::kInStream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return CopyFlat(copy, nullptr, When::kNow); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return CopyFlat(copy, nullptr, When::kNow);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyFlat(copy, stream, When::kInStream);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return CopySolid(copy, nullptr, When::kNow); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return CopySolid(copy, stream, When::kInStream);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(FromPeer(*copy), nullptr, When::kNow);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(FromPeer(*copy), stream, When::kInStream);
}

}  // extern "C"
// NOLINTEND(performance-no-int-to-ptr)
