#include "inject/window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/write_signals.h"

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

// Bytes of addresses behind the base: for every SM number below kMaxSms, as far as 32 bits of
// offset reach.
uint64_t Reach(const ring::Layout& layout) {
  const uint64_t per_sm = uint64_t{ring::kSlotsPerSm} * layout.ring_bytes;
  return std::min(ring::kWindowAlignment, std::max(ring::kMaxSms * per_sm, layout.rings_bytes()));
}

}  // namespace

Result<void> Window::MapAt(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle) {
  const CUresult result = Real().MemMap(address, bytes, 0, handle, 0);
  if (result != CUDA_SUCCESS) return Failure("cuMemMap", result);
  mappings_.push_back({address, bytes});
  return {};
}

Result<void> Window::MapSink(uint64_t from, uint64_t to, CUmemGenericAllocationHandle sink) {
  for (uint64_t address = from; address < to; address += kGranularity) {
    if (auto done = MapAt(address, kGranularity, sink); !done) return done;
  }
  return {};
}

Result<Window> Window::Create(CUdevice device, const ring::Layout& layout, bool keeps) {
  Window window;
  window.layout_ = layout;
  window.device_ = device;
  // Room for every mapping first: later there is memory of the device to be given back.
  window.mappings_.reserve(2 + (ring::kTableOffset + Reach(layout)) / kGranularity);
  Result<void> done = window.CreateMemories(keeps);
  if (done) done = window.MapAll();
  if (done) done = window.Clear();
  if (!done) {
    window.GiveBack();
    return tl::unexpected(done.error());
  }
  return window;
}

// Table, rings and a sink, or a sink of each.
Result<void> Window::CreateMemories(bool keeps) {
  CUresult result = CreateMemory(&sink_, device_, kGranularity);
  if (result != CUDA_SUCCESS) return Failure("cuMemCreate of 2 MiB", result);
  if (!keeps || CreateMemory(&table_, device_, layout_.table_bytes()) != CUDA_SUCCESS) table_ = 0;
  if (table_ != 0 && CreateMemory(&rings_, device_, layout_.rings_bytes()) != CUDA_SUCCESS) {
    Real().MemRelease(table_);
    table_ = rings_ = 0;
  }
  is_sink_ = rings_ == 0;
  device_bytes_ = kGranularity + (is_sink_ ? kGranularity : layout_.window_bytes());
  if (!is_sink_) return {};
  result = CreateMemory(&table_, device_, kGranularity);
  if (result != CUDA_SUCCESS) return Failure("cuMemCreate of 2 MiB", result);
  return {};
}

Result<void> Window::MapAll() {
  const uint64_t reach = Reach(layout_);
  CUdeviceptr start = 0;
  // Room for the table, the window, and as far away as the bit says the one for those left out.
  const uint64_t bytes = ring::kWindowAlignment + ring::kSinkBit + reach;
  CUresult result = Real().MemAddressReserve(&start, bytes, 2 * ring::kSinkBit, 0, 0);
  if (result != CUDA_SUCCESS) return Failure("cuMemAddressReserve", result);
  reserved_ = start;
  reserved_bytes_ = bytes;
  base_ = start + ring::kWindowAlignment;

  const uint64_t table = base_ - ring::kTableOffset;
  const uint64_t table_end = table + (is_sink_ ? 0 : layout_.table_bytes());
  const uint64_t rings_end = base_ + (is_sink_ ? 0 : layout_.rings_bytes());
  Result<void> done;
  if (!is_sink_) done = MapAt(table, layout_.table_bytes(), table_);
  if (done && !is_sink_) done = MapAt(base_, layout_.rings_bytes(), rings_);
  if (done) done = MapSink(table_end, base_, is_sink_ ? table_ : sink_);
  if (done) done = MapSink(rings_end, base_ + reach, sink_);
  if (!done) return done;

  return Allow(table, base_ + reach);
}

Result<void> Window::Allow(uint64_t from, uint64_t to) const {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = Real().MemSetAccess(from, to - from, &access, 1);
  if (result != CUDA_SUCCESS) return Failure("cuMemSetAccess", result);
  return {};
}

Result<void> Window::MapFile(uint64_t address, uint64_t bytes, const Descriptor& file,
                             uint64_t from, uint64_t piece) {
  for (uint64_t at = 0; at < bytes; at += piece) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the GPU is one of ours
    void* const place = reinterpret_cast<void*>(address + at);
    if (mmap(place, std::min(piece, bytes - at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             file.get(), static_cast<off_t>(from)) == MAP_FAILED) {
      return Fail(ErrorKind::kSystem, "mmap of rings: {}", std::strerror(errno));
    }
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const place = reinterpret_cast<void*>(address);
  CUresult result = Real().MemHostRegister(
      place, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) return Failure("cuMemHostRegister", result);
  registered_.push_back({address, bytes});
  CUdeviceptr seen = 0;
  result = Real().MemHostGetDevicePointer(&seen, place, 0);
  if (result != CUDA_SUCCESS) return Failure("cuMemHostGetDevicePointer", result);
  if (seen == address) return {};
  return Fail(ErrorKind::kSystem, "the GPU sees memory of the host at other addresses than we do");
}

// Addresses as of a window in device memory; only SMs that there are have a place in it.
Result<void> Window::MapInHost() {
  const uint64_t bytes =
      2 * ring::kSinkBit + ring::kWindowAlignment + ring::kSinkBit + layout_.rings_bytes();
  void* const start =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, "no addresses for rings: {}", std::strerror(errno));
  }
  reserved_ = reinterpret_cast<uint64_t>(start);
  reserved_bytes_ = bytes;
  const uint64_t alignment = 2 * ring::kSinkBit;
  base_ = (reserved_ + alignment - 1) / alignment * alignment + ring::kWindowAlignment;
  const WriteSignalGuard guard;  // of a limit to the size of files
  const auto make = [](Descriptor& file, const char* name, uint64_t size) -> Result<void> {
    file = Descriptor(memfd_create(name, MFD_CLOEXEC));
    if (file.get() >= 0 && ftruncate(file.get(), static_cast<off_t>(size)) == 0) return {};
    return Fail(ErrorKind::kSystem, "memory for rings: {}", std::strerror(errno));
  };
  Result<void> done = make(table_file_, "iket ring table", layout_.table_bytes());
  if (done) done = make(rings_file_, "iket rings", layout_.rings_bytes());
  if (done) {
    done = MapFile(base_ - ring::kTableOffset, layout_.table_bytes(), table_file_, 0,
                   layout_.table_bytes());
  }
  if (done) done = MapFile(base_, layout_.rings_bytes(), rings_file_, 0, layout_.rings_bytes());
  return done;
}

Result<Window> Window::CreateInHost(const ring::Layout& layout) {
  const RealDriver& real = Real();
  if (real.MemHostRegister == nullptr || real.MemHostUnregister == nullptr ||
      real.MemHostGetDevicePointer == nullptr) {
    return Fail(ErrorKind::kSystem, "this driver does not let the GPU write memory of the host");
  }
  Window window;
  window.layout_ = layout;
  window.is_in_host_ = true;
  if (auto done = window.MapInHost(); !done) {
    window.GiveBack();
    return tl::unexpected(done.error());
  }
  return window;
}

Result<void> Window::MakeSinks() {
  if (has_sinks_) return {};
  if (is_in_host()) {
    const WriteSignalGuard guard;
    sink_file_ = Descriptor(memfd_create("iket sink", MFD_CLOEXEC));
    if (sink_file_.get() < 0 || ftruncate(sink_file_.get(), 2 * kGranularity) != 0) {
      return Fail(ErrorKind::kSystem, "memory for a sink: {}", std::strerror(errno));
    }
    // Apart, since warps go on from what they read in the table.
    auto done = MapFile(sink_base() - ring::kTableOffset, layout_.table_bytes(), sink_file_, 0,
                        kGranularity);
    if (done) {
      done = MapFile(sink_base(), layout_.rings_bytes(), sink_file_, kGranularity, kGranularity);
    }
    has_sinks_ = done.has_value();
    return done;
  }
  const uint64_t end = sink_base() + Reach(layout_);
  const uint64_t table = sink_base() - ring::kTableOffset;
  const size_t before = mappings_.size();
  mappings_.reserve(before + (end - table) / kGranularity);
  CUresult result = CreateMemory(&sink_table_, device_, kGranularity);
  if (result != CUDA_SUCCESS) return Failure("cuMemCreate of 2 MiB", result);
  Result<void> done = MapSink(table, sink_base(), sink_table_);
  if (done) done = MapSink(sink_base(), end, sink_);
  if (done) done = Allow(table, end);
  if (done) {
    const PrivateStream stream;
    result = stream.result();
    if (result == CUDA_SUCCESS) result = Real().MemsetD8Async(table, 0, kGranularity, stream);
    if (result == CUDA_SUCCESS) result = stream.Wait();
    if (result != CUDA_SUCCESS) done = Failure("clearing the sink", result);
  }
  if (!done) {
    for (size_t i = before; i < mappings_.size(); ++i) {
      Real().MemUnmap(mappings_[i].address, mappings_[i].bytes);
    }
    mappings_.resize(before);
    Real().MemRelease(sink_table_);
    sink_table_ = 0;
    return done;
  }
  has_sinks_ = true;
  device_bytes_ += kGranularity;
  return {};
}

Result<void> Window::Clear() const {
  const PrivateStream stream;
  if (stream.result() != CUDA_SUCCESS) return Failure("cuStreamCreate", stream.result());
  const uint64_t table_bytes = is_sink_ ? kGranularity : layout_.table_bytes();
  const uint64_t rings_bytes = is_sink_ ? kGranularity : layout_.rings_bytes();
  CUresult result = Real().MemsetD8Async(base_ - ring::kTableOffset, 0, table_bytes, stream);
  if (result == CUDA_SUCCESS) result = Real().MemsetD8Async(base_, 0, rings_bytes, stream);
  if (result == CUDA_SUCCESS) result = stream.Wait();
  if (result != CUDA_SUCCESS) return Failure("clearing the rings", result);
  return {};
}

// What has been taken so far; a failure here changes nothing for the program.
void Window::GiveBack() {
  if (is_in_host()) {
    for (const Mapping& mapping : registered_) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      Real().MemHostUnregister(reinterpret_cast<void*>(mapping.address));
    }
    registered_.clear();
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (reserved_bytes_ != 0) munmap(reinterpret_cast<void*>(reserved_), reserved_bytes_);
    return;
  }
  for (const Mapping& mapping : mappings_) Real().MemUnmap(mapping.address, mapping.bytes);
  mappings_.clear();
  if (reserved_bytes_ != 0) Real().MemAddressFree(reserved_, reserved_bytes_);
  for (const CUmemGenericAllocationHandle memory : {table_, rings_, sink_, sink_table_}) {
    if (memory != 0) Real().MemRelease(memory);
  }
}

Result<Window::Shared> Window::Share() const {
  Shared shared;
  if (is_in_host()) {
    shared.table = fcntl(table_file_.get(), F_DUPFD_CLOEXEC, 0);
    shared.rings = fcntl(rings_file_.get(), F_DUPFD_CLOEXEC, 0);
    if (shared.table >= 0 && shared.rings >= 0) return shared;
    const int error = errno;
    if (shared.table >= 0) close(shared.table);
    if (shared.rings >= 0) close(shared.rings);
    return Fail(ErrorKind::kSystem, "memory of rings cannot be shared: {}", std::strerror(error));
  }
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
  if (is_in_host()) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
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
