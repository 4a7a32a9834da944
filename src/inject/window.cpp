#include "inject/window.h"

#include <unistd.h>

#include <algorithm>

namespace iket::inject {
namespace {

constexpr uint64_t kGranularity = uint64_t{2} << 20;

tl::unexpected<Error> Failure(const char* call, CUresult result) {
  return Fail(ErrorKind::kSystem, "{}: {}", call, NameOf(result));
}

CUmemAllocationProp Properties(CUdevice device, bool shareable) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  if (shareable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

// Shareable memory, or plain memory where the system knows no other.
CUresult CreateMemory(CUmemGenericAllocationHandle* handle, CUdevice device, uint64_t bytes) {
  for (bool shareable : {true, false}) {
    const CUmemAllocationProp properties = Properties(device, shareable);
    const CUresult result = Real().MemCreate(handle, bytes, &properties, 0);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

// A stream of our own, of no relation to the program's.
class PrivateStream {
 public:
  PrivateStream() { result_ = Real().StreamCreate(&stream_, CU_STREAM_NON_BLOCKING); }
  PrivateStream(const PrivateStream&) = delete;
  PrivateStream& operator=(const PrivateStream&) = delete;
  ~PrivateStream() {
    if (result_ == CUDA_SUCCESS) Real().StreamDestroy(stream_);
  }
  CUresult result() const { return result_; }
  operator CUstream() const { return stream_; }  // NOLINT: a handle like any other
  CUresult Wait() const { return Real().StreamSynchronize(stream_); }

 private:
  CUstream stream_ = nullptr;
  CUresult result_;
};

}  // namespace

Result<void> Window::MapAt(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle) {
  const CUresult result = Real().MemMap(address, bytes, 0, handle, 0);
  if (result != CUDA_SUCCESS) return Failure("cuMemMap", result);
  return {};
}

Result<void> Window::MapSink(uint64_t from, uint64_t to) {
  for (uint64_t address = from; address < to; address += kGranularity) {
    if (auto done = MapAt(address, kGranularity, sink_); !done) return done;
  }
  return {};
}

Result<Window> Window::Create(CUdevice device, const ring::Layout& layout) {
  const RealDriver& real = Real();
  Window window;
  window.layout_ = layout;
  window.device_ = device;

  CUresult result = CreateMemory(&window.sink_, device, kGranularity);
  if (result != CUDA_SUCCESS) return Failure("cuMemCreate of 2 MiB", result);
  result = CreateMemory(&window.table_, device, layout.table_bytes());
  if (result == CUDA_SUCCESS) {
    result = CreateMemory(&window.rings_, device, layout.rings_bytes());
    if (result != CUDA_SUCCESS) real.MemRelease(window.table_);
  }
  window.is_sink_ = result != CUDA_SUCCESS;

  // Addresses for every SM number below kMaxSms, as far as 32 bits of offset reach.
  const uint64_t per_sm = uint64_t{ring::kSlotsPerSm} * layout.ring_bytes;
  const uint64_t reach =
      std::min(ring::kWindowAlignment, std::max(ring::kMaxSms * per_sm, layout.rings_bytes()));
  const uint64_t reserved = ring::kWindowAlignment + reach;
  CUdeviceptr start = 0;
  result = real.MemAddressReserve(&start, reserved, ring::kWindowAlignment, 0, 0);
  if (result != CUDA_SUCCESS) return Failure("cuMemAddressReserve", result);
  window.base_ = start + ring::kWindowAlignment;
  const uint64_t table = window.base_ - ring::kTableOffset;
  uint64_t table_end = table;
  uint64_t rings_end = window.base_;
  if (!window.is_sink_) {
    if (auto done = window.MapAt(table, layout.table_bytes(), window.table_); !done) {
      return tl::unexpected(done.error());
    }
    if (auto done = window.MapAt(window.base_, layout.rings_bytes(), window.rings_); !done) {
      return tl::unexpected(done.error());
    }
    table_end += layout.table_bytes();
    rings_end += layout.rings_bytes();
    window.device_bytes_ = layout.window_bytes();
  }
  if (auto done = window.MapSink(table_end, window.base_); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = window.MapSink(rings_end, window.base_ + reach); !done) {
    return tl::unexpected(done.error());
  }
  window.device_bytes_ += kGranularity;
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = real.MemSetAccess(table, ring::kTableOffset + reach, &access, 1);
  if (result != CUDA_SUCCESS) return Failure("cuMemSetAccess", result);

  const PrivateStream stream;
  if (stream.result() != CUDA_SUCCESS) return Failure("cuStreamCreate", stream.result());
  const uint64_t clear_table = window.is_sink_ ? kGranularity : layout.table_bytes();
  const uint64_t clear_rings = window.is_sink_ ? kGranularity : layout.rings_bytes();
  result = real.MemsetD8Async(table, 0, clear_table, stream);
  if (result == CUDA_SUCCESS) result = real.MemsetD8Async(window.base_, 0, clear_rings, stream);
  if (result == CUDA_SUCCESS) result = stream.Wait();
  if (result != CUDA_SUCCESS) return Failure("clearing the rings", result);
  return window;
}

Result<Window::Shared> Window::Share() const {
  Shared shared;
  CUresult result =
      Real().MemExport(&shared.table, table_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) {
    result = Real().MemExport(&shared.rings, rings_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) close(shared.table);
  }
  if (result != CUDA_SUCCESS) return Failure("cuMemExportToShareableHandle", result);
  return shared;
}

Result<void> Window::Copy(void* to, uint64_t address, size_t bytes) const {
  const PrivateStream stream;
  CUresult result = stream.result();
  if (result == CUDA_SUCCESS) result = Real().MemcpyDtoHAsync(to, address, bytes, stream);
  if (result == CUDA_SUCCESS) result = stream.Wait();
  if (result != CUDA_SUCCESS) return Failure("copying rings", result);
  return {};
}

Result<void> Window::CopyTable(void* to, size_t bytes) const {
  return Copy(to, base_ - ring::kTableOffset, bytes);
}

Result<void> Window::CopyRings(void* to, uint64_t offset, size_t bytes) const {
  return Copy(to, base_ + offset, bytes);
}

}  // namespace iket::inject
