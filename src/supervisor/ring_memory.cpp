#include "supervisor/ring_memory.h"

#include <system_error>

#include "probe/clocks.h"
#include "probe/places.h"
#include "session/finish.h"

namespace iket::supervisor {
// A shareable handle mapped into this process, readable.
class RingWindow::Mapping {
 public:
  explicit Mapping(const Driver& driver) : driver_(driver) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
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

  CUdeviceptr address() const { return address_; }

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

RingWindow::RingWindow(const Driver* driver) : driver_(driver) {}

RingWindow::~RingWindow() {
  rings_.reset();
  table_.reset();
  if (current_ != nullptr) driver_->PrimaryCtxRelease(device_);
}

Result<std::unique_ptr<RingWindow>> RingWindow::Open(const Driver& driver,
                                                     const session::RingMemory& untrusted_memory) {
  const auto layout = ring::MakeLayout(untrusted_memory.ring_bytes, untrusted_memory.sm_count);
  if (!layout) return FailIn("the guest's ring memory", layout.error());
  const auto device = driver.FindDevice(untrusted_memory.device_uuid);
  if (!device) return tl::unexpected(device.error());
  std::unique_ptr<RingWindow> window(new RingWindow(&driver));
  window->layout_ = *layout;
  window->context_ = untrusted_memory.context;
  window->device_ = *device;
  const CUresult result = driver.PrimaryCtxRetain(&window->current_, *device);
  if (result != CUDA_SUCCESS) return driver.Failure("cuDevicePrimaryCtxRetain", result);
  if (auto done = window->Enter(); !done) return tl::unexpected(done.error());
  window->table_ = std::make_unique<Mapping>(driver);
  window->rings_ = std::make_unique<Mapping>(driver);
  auto done = window->table_->Map(*device, untrusted_memory.table, layout->table_bytes());
  if (done) done = window->rings_->Map(*device, untrusted_memory.rings, layout->rings_bytes());
  if (!done) return tl::unexpected(done.error());
  return window;
}

Result<std::unique_ptr<RingWindow>> RingWindow::OpenInHost(
    const session::RingMemory& untrusted_memory) {
  const auto layout = ring::MakeLayout(untrusted_memory.ring_bytes, untrusted_memory.sm_count);
  if (!layout) return FailIn("the guest's ring memory", layout.error());
  std::unique_ptr<RingWindow> window(new RingWindow(nullptr));
  window->layout_ = *layout;
  window->context_ = untrusted_memory.context;
  window->table_file_ = untrusted_memory.table;
  window->rings_file_ = untrusted_memory.rings;
  return window;
}

Result<void> RingWindow::Enter() const {
  if (is_in_host()) return {};
  const CUresult result = driver_->CtxSetCurrent(current_);
  if (result != CUDA_SUCCESS) return driver_->Failure("cuCtxSetCurrent", result);
  return {};
}

std::optional<capture::ClockExchange> RingWindow::ExchangeClocks() const {
  if (is_in_host() || !driver_->probe || driver_->IsSimulated(device_)) return std::nullopt;
  auto clocks = probe::ClockProbe::Make(*driver_->probe);
  auto exchange = clocks ? clocks->Ask() : std::nullopt;
  if (exchange) exchange->context = context_;
  return exchange;
}

std::vector<capture::SmPlace> RingWindow::FindPlaces() const {
  if (is_in_host() || !driver_->probe || driver_->IsSimulated(device_)) return {};
  return probe::FindPlaces(*driver_->probe, layout_.sm_count);
}

RingPlace RingWindow::table() const {
  return is_in_host() ? RingPlace{.file = table_file_} : RingPlace{.address = table_->address()};
}
RingPlace RingWindow::rings() const {
  return is_in_host() ? RingPlace{.file = rings_file_} : RingPlace{.address = rings_->address()};
}

Result<std::unique_ptr<CopyLane>> RingWindow::OpenLane() const {
  if (is_in_host()) return CopyLane::OpenInHost();
  return CopyLane::Open(*driver_, device_);
}

session::WindowCopy RingWindow::Copy() const {
  if (is_in_host()) {
    return {.table = [this](void* to,
                            size_t bytes) { return ReadUntrustedFile(table_file_, to, 0, bytes); },
            .rings =
                [this](void* to, uint64_t offset, size_t bytes) {
                  return ReadUntrustedFile(rings_file_, to, offset, bytes);
                }};
  }
  return {.table = [this](void* to, size_t bytes) { return table_->Copy(to, 0, bytes); },
          .rings = [this](void* to, uint64_t offset,
                          size_t bytes) { return rings_->Copy(to, offset, bytes); }};
}

void RingWindows::OpenSoon() {
  if (driver_ != nullptr || opening_.valid()) return;
  try {
    opening_ = std::async(std::launch::async, [path = path_] { return Driver::Open(path); });
  } catch (const std::system_error&) {
    return;  // no thread is to be had: it is opened when it is needed
  }
}

Result<std::unique_ptr<RingWindow>> RingWindows::Open(const session::RingMemory& untrusted_memory) {
  if (untrusted_memory.in_host) return RingWindow::OpenInHost(untrusted_memory);
  if (driver_ == nullptr) {
    driver_ =
        std::make_unique<Result<Driver>>(opening_.valid() ? opening_.get() : Driver::Open(path_));
  }
  if (!*driver_) return tl::unexpected(driver_->error());
  return RingWindow::Open(**driver_, untrusted_memory);
}

Result<RingWindow*> RingWindows::Find(const session::RingMemory& untrusted_memory) {
  const std::pair key(untrusted_memory.pid, untrusted_memory.context);
  auto found = windows_.find(key);
  if (found == windows_.end()) found = windows_.emplace(key, Open(untrusted_memory)).first;
  if (!found->second) return tl::unexpected(found->second.error());
  RingWindow* const window = found->second->get();
  if (auto done = window->Enter(); !done) return tl::unexpected(done.error());
  return window;
}

void RingWindows::Forget(uint32_t pid) {
  std::erase_if(windows_, [pid](const auto& entry) {
    if (entry.first.first != pid) return false;
    if (entry.second) static_cast<void>((*entry.second)->Enter());
    return true;
  });
}

std::string NotRead(const session::RingMemory& memory, const std::string& why) {
  return fmt::format("rings of context {} of process {} not read: {}", memory.context, memory.pid,
                     why);
}

Result<void> AppendRings(RingWindow& window, bool live, uint64_t moment, capture::Writer& writer) {
  const capture::RingMoment when{
      .context = window.context(), .live = live, .number = moment, .begin_ns = session::NowNs()};
  std::vector<session::SmRings> memory;
  auto done = session::ReadRings(window.layout(), window.Copy(), [&memory](session::SmRings read) {
    memory.push_back(std::move(read));
  });
  if (!done) return done;
  std::vector<capture::RingContents> contents;
  for (const session::SmRings& read : memory) {
    contents.insert(contents.end(), read.rings.begin(), read.rings.end());
  }
  if (contents.empty()) return {};
  return writer.Append(when, contents);
}

}  // namespace iket::supervisor
