#include "supervisor/ring_memory.h"

#include <utility>
#include <vector>

#include "session/finish.h"
#include "session/ring_image.h"

namespace iket::supervisor {
namespace {

// A shareable handle mapped into this process, readable.
class MappedHandle {
 public:
  explicit MappedHandle(const Driver& driver) : driver_(driver) {}
  MappedHandle(const MappedHandle&) = delete;
  MappedHandle& operator=(const MappedHandle&) = delete;
  ~MappedHandle() {
    if (mapped_) driver_.MemUnmap(address_, bytes_);
    if (address_ != 0) driver_.MemAddressFree(address_, bytes_);
    if (imported_) driver_.MemRelease(handle_);
  }

  Result<void> Map(CUdevice device, int descriptor, size_t bytes) {
    bytes_ = bytes;
    CUresult result =
        // NOLINTNEXTLINE(performance-no-int-to-ptr): so the driver wants its descriptors
        driver_.MemImport(&handle_, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuMemImportFromShareableHandle", result);
    imported_ = true;
    result = driver_.MemAddressReserve(&address_, bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuMemAddressReserve", result);
    result = driver_.MemMap(address_, bytes, 0, handle_, 0);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuMemMap", result);
    mapped_ = true;
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    result = driver_.MemSetAccess(address_, bytes, &access, 1);
    if (result != CUDA_SUCCESS) {
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;  // older drivers know no other
      result = driver_.MemSetAccess(address_, bytes, &access, 1);
    }
    if (result != CUDA_SUCCESS) return driver_.Failure("cuMemSetAccess", result);
    return {};
  }

  Result<void> Copy(void* to, uint64_t offset, size_t bytes) const {
    const CUresult result = driver_.MemcpyDtoH(to, address_ + offset, bytes);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuMemcpyDtoH", result);
    return {};
  }

 private:
  const Driver& driver_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
  bool imported_ = false;
  bool mapped_ = false;
};

// Our use of the device's primary context.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    if (retained_) driver_.PrimaryCtxRelease(device_);
  }
  Result<void> Enter() {
    CUcontext context = nullptr;
    CUresult result = driver_.PrimaryCtxRetain(&context, device_);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuDevicePrimaryCtxRetain", result);
    retained_ = true;
    result = driver_.CtxSetCurrent(context);
    if (result != CUDA_SUCCESS) return driver_.Failure("cuCtxSetCurrent", result);
    return {};
  }

 private:
  const Driver& driver_;
  CUdevice device_;
  bool retained_ = false;
};

}  // namespace

Result<void> AppendRingMemory(const Driver& driver, const session::RingMemory& untrusted_memory,
                              bool live, uint64_t moment, capture::Writer& writer) {
  const auto layout = ring::MakeLayout(untrusted_memory.ring_bytes, untrusted_memory.sm_count);
  if (!layout) return FailIn("the guest's ring memory", layout.error());
  const auto device = driver.FindDevice(untrusted_memory.device_uuid);
  if (!device) return tl::unexpected(device.error());
  CurrentContext context(driver, *device);
  if (auto done = context.Enter(); !done) return done;
  MappedHandle table(driver);
  MappedHandle rings(driver);
  if (auto done = table.Map(*device, untrusted_memory.table, layout->table_bytes()); !done) {
    return done;
  }
  if (auto done = rings.Map(*device, untrusted_memory.rings, layout->rings_bytes()); !done) {
    return done;
  }

  capture::RingMoment when{.context = untrusted_memory.context,
                           .live = live,
                           .number = moment,
                           .begin_ns = session::NowNs()};
  std::vector<session::SmRings> memory;
  const session::WindowCopy copy{
      .table = [&](void* to, size_t bytes) { return table.Copy(to, 0, bytes); },
      .rings = [&](void* to, uint64_t offset,
                   size_t bytes) { return rings.Copy(to, offset, bytes); }};
  if (auto done = session::ReadRings(
          *layout, copy, [&memory](session::SmRings read) { memory.push_back(std::move(read)); });
      !done) {
    return done;
  }
  std::vector<capture::RingContents> contents;
  for (const session::SmRings& read : memory) {
    contents.insert(contents.end(), read.rings.begin(), read.rings.end());
  }
  if (contents.empty()) return {};
  return writer.Append(when, contents);
}

}  // namespace iket::supervisor
