#include "supervisor/copy_lane.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/retry.h"

namespace iket::supervisor {

Result<void> ReadUntrustedFile(int file, void* to, uint64_t offset, size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = Retry([&] { return pread(file, at, bytes, static_cast<off_t>(offset)); });
    if (got < 0) return Fail(ErrorKind::kSystem, "reading rings: {}", std::strerror(errno));
    if (got == 0) return Fail(ErrorKind::kBadInput, "the memory of the rings ends too early");
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

Result<std::unique_ptr<CopyLane>> CopyLane::Open(const Driver& driver, CUdevice device) {
  std::unique_ptr<CopyLane> lane(new CopyLane(&driver, device));
  CUresult result = driver.PrimaryCtxRetain(&lane->context_, device);
  if (result != CUDA_SUCCESS) return driver.Failure("cuDevicePrimaryCtxRetain", result);
  if (auto done = lane->Enter(); !done) return tl::unexpected(done.error());
  // Not behind the work of a default stream, nor in front of it.
  result = driver.StreamCreate(&lane->stream_, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return driver.Failure("cuStreamCreate", result);
  return lane;
}

std::unique_ptr<CopyLane> CopyLane::OpenInHost() {
  return std::unique_ptr<CopyLane>(new CopyLane(nullptr, 0));
}

CopyLane::~CopyLane() {
  if (stream_ != nullptr) {
    driver_->StreamSynchronize(stream_);
    driver_->StreamDestroy(stream_);
  }
  for (Buffer& buffer : buffers_) Free(buffer);
  if (context_ != nullptr) driver_->PrimaryCtxRelease(device_);
}

Result<void> CopyLane::Enter() const {
  if (driver_ == nullptr) return {};
  const CUresult result = driver_->CtxSetCurrent(context_);
  if (result != CUDA_SUCCESS) return driver_->Failure("cuCtxSetCurrent", result);
  return {};
}

void CopyLane::Free(Buffer& buffer) const {
  if (buffer.is_locked) driver_->MemFreeHost(buffer.memory);
  buffer = {};
}

void CopyLane::Grow(Buffer& buffer, size_t bytes) const {
  constexpr size_t kLeast = size_t{1} << 20;  // locking takes longer than copying
  bytes = std::max(bytes, kLeast);
  Free(buffer);
  void* memory = nullptr;
  buffer.is_locked =
      driver_ != nullptr &&
      driver_->MemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS;
  if (buffer.is_locked) {
    buffer.memory = static_cast<std::byte*>(memory);
  } else {
    buffer.plain.resize(bytes);
    buffer.memory = buffer.plain.data();
  }
  buffer.size = bytes;
}

Result<void> CopyLane::Begin(size_t which, RingPlace from, size_t bytes) {
  Buffer& buffer = buffers_[which];
  if (buffer.size < bytes) Grow(buffer, bytes);
  buffer.used = bytes;
  if (driver_ == nullptr) return ReadUntrustedFile(from.file, buffer.memory, from.offset, bytes);
  const CUresult result = driver_->MemcpyDtoHAsync(buffer.memory, from.address, bytes, stream_);
  if (result != CUDA_SUCCESS) return driver_->Failure("cuMemcpyDtoHAsync", result);
  return {};
}

Result<void> CopyLane::Wait() const {
  if (driver_ == nullptr) return {};
  const CUresult result = driver_->StreamSynchronize(stream_);
  if (result != CUDA_SUCCESS) return driver_->Failure("cuStreamSynchronize", result);
  return {};
}

}  // namespace iket::supervisor
