#include "simdriver/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "base/write_signals.h"

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

namespace iket::simdriver {
namespace {

constexpr uint64_t kAlignment = 512;
// Between two allocations, so that an access behind the end of one faults.
constexpr uint64_t kGap = 65536;
constexpr uint64_t kPage = 4096;
// A file that another process could cut would fault whoever reads it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

struct Book {
  std::mutex mutex;
  std::map<uint64_t, Allocation> allocations;  // by address
  std::map<CUmemoryPool, PoolUse> pools;
  uint64_t next_id = 1;
};
Book& TheBook() {
  static auto* book = new Book;
  return *book;
}

std::atomic<uint64_t> g_device_bytes{0};

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// False, and nothing taken, if the device has not so much left.
bool TakeDeviceBytes(uint64_t bytes) {
  uint64_t before = g_device_bytes.load();
  do {
    if (bytes > Model().memory_bytes - before) return false;
  } while (!g_device_bytes.compare_exchange_weak(before, before + bytes));
  return true;
}

void Enter(const Allocation& allocation) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  Allocation& entered = book.allocations[allocation.address];
  entered = allocation;
  entered.buffer_id = book.next_id++;
  if (allocation.kind != Allocation::Kind::kPooled) return;
  PoolUse& use = book.pools[allocation.pool];
  use.now += allocation.size;
  use.high = std::max(use.high, use.now);
}

// Gives the addresses and the memory back. What is not there is no error of the caller's.
void Forget(const Allocation& allocation) {
  uint64_t start = allocation.address;
  uint64_t mapped = allocation.size;
  if (allocation.on_host() || allocation.kind == Allocation::Kind::kManaged) {
    start = allocation.address / kPage * kPage;
    mapped = RoundUp(allocation.address + allocation.size, kPage) - start;
  } else {
    g_device_bytes -= RoundUp(allocation.size, kAlignment);
  }
  // Both succeed: the book says that they are there.
  if (Addresses().Unmap(start, mapped)) (void)Addresses().Release(start);
}

// Makes [pointer, pointer + size) visible to the device at the host's own address.
CUresult MapHostRange(uint64_t start, uint64_t bytes, sim::HostMemory memory) {
  const auto reserved = Addresses().Reserve(bytes, 1, start);
  if (!reserved) return CUDA_ERROR_OUT_OF_MEMORY;
  if (*reserved != start) {
    (void)Addresses().Release(*reserved);
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (!Addresses().Map(start, bytes, std::move(memory))) {
    (void)Addresses().Release(start);
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  return CUDA_SUCCESS;
}

CUresult AllocateOnHost(size_t bytes, uint64_t* address) {
  auto memory = sim::AllocateHostMemory(RoundUp(bytes, kPage));
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<uint64_t>(memory->get());
  return MapHostRange(*address, RoundUp(bytes, kPage), std::move(*memory));
}

CUresult AllocateOnDevice(size_t bytes, uint64_t* address) {
  const uint64_t rounded = RoundUp(bytes, kAlignment);
  if (!TakeDeviceBytes(rounded)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = sim::AllocateHostMemory(rounded);
  const auto reserved = Addresses().Reserve(rounded + kGap, kAlignment);
  // To the byte: what reads or writes past the end is told.
  if (memory && reserved && Addresses().Map(*reserved, bytes, std::move(*memory))) {
    *address = *reserved;
    return CUDA_SUCCESS;
  }
  if (reserved) (void)Addresses().Release(*reserved);
  g_device_bytes -= rounded;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// True if the process has memory at all of [from, to), to be read and (unless `reads_only`)
// written.
bool IsMappedHere(uint64_t from, uint64_t to, bool reads_only) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; from < to && std::getline(maps, line);) {
    uint64_t first = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &first, &end, access) != 3) break;
    if (end <= from) continue;
    if (first > from || access[0] != 'r' || (access[1] != 'w' && !reads_only)) return false;
    from = end;
  }
  return from >= to;
}

// A duplicate above those of the standard streams: where the program has closed one of them, what
// it prints must not land in memory of the device.
int DuplicateAboveStandardOnes(int descriptor) {
  return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

// Pages without a name; -1 if the system gives none.
int CreatePages(size_t bytes) {
  const int made = memfd_create("iket-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -1;
  const int descriptor = DuplicateAboveStandardOnes(made);
  close(made);
  // The program's limit to the size of files holds for these too; that is a failure, not a death.
  const WriteSignalGuard guard;
  if (descriptor >= 0 && (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
                          fcntl(descriptor, F_ADD_SEALS, kSeals) != 0)) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  return descriptor;
}

}  // namespace

// --- physical memory -----------------------------------------------------------------------------

Result<void> PhysicalMemory::MapPages() {
  void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (pages == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, "cannot map {} bytes of shared memory: {}", size_,
                std::strerror(errno));
  }
  bytes_ = sim::HostMemory(static_cast<std::byte*>(pages),
                           [size = size_](std::byte* p) { munmap(p, size); });
  return {};
}

Result<std::shared_ptr<PhysicalMemory>> PhysicalMemory::Create(
    size_t bytes, const CUmemAllocationProp& properties) {
  std::shared_ptr<PhysicalMemory> memory(new PhysicalMemory);
  if (!TakeDeviceBytes(bytes)) return Fail(ErrorKind::kSystem, "out of device memory");
  memory->counted_ = true;
  memory->size_ = bytes;
  memory->properties_ = properties;
  memory->descriptor_ = CreatePages(bytes);
  if (memory->descriptor_ < 0) {
    return Fail(ErrorKind::kSystem, "no shared memory of {} bytes: {}", bytes,
                std::strerror(errno));
  }
  if (auto mapped = memory->MapPages(); !mapped) return tl::unexpected(mapped.error());
  return memory;
}

Result<std::shared_ptr<PhysicalMemory>> PhysicalMemory::Import(int untrusted_descriptor) {
  std::shared_ptr<PhysicalMemory> memory(new PhysicalMemory);
  memory->descriptor_ = DuplicateAboveStandardOnes(untrusted_descriptor);
  struct stat status{};
  if (memory->descriptor_ < 0 || fstat(memory->descriptor_, &status) != 0 || status.st_size <= 0 ||
      (fcntl(memory->descriptor_, F_GET_SEALS) & kSeals) != kSeals) {
    return Fail(ErrorKind::kUsage, "the descriptor is no exported memory of a software device");
  }
  memory->size_ = static_cast<size_t>(status.st_size);
  memory->properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->properties_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  memory->properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (auto mapped = memory->MapPages(); !mapped) return tl::unexpected(mapped.error());
  return memory;
}

PhysicalMemory::~PhysicalMemory() {
  if (descriptor_ >= 0) close(descriptor_);
  if (counted_) g_device_bytes -= size_;
}

int PhysicalMemory::Descriptor() const { return DuplicateAboveStandardOnes(descriptor_); }

// --- allocations ---------------------------------------------------------------------------------

CUresult Allocate(Allocation::Kind kind, size_t bytes, const Context& context, unsigned flags,
                  CUmemoryPool pool, uint64_t* address) {
  // Far above what any machine has; sums below cannot overflow.
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (uint64_t{1} << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool on_host = kind == Allocation::Kind::kHost || kind == Allocation::Kind::kManaged;
  const CUresult result =
      on_host ? AllocateOnHost(bytes, address) : AllocateOnDevice(bytes, address);
  if (result != CUDA_SUCCESS) return result;
  Enter({.kind = kind,
         .address = *address,
         .size = bytes,
         .flags = flags,
         .context_id = context.id,
         .pool = pool});
  return CUDA_SUCCESS;
}

CUresult RegisterHostMemory(void* pointer, size_t bytes, const Context& context, unsigned flags) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (pointer == nullptr || bytes == 0 || address + bytes < address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t start = address / kPage * kPage;
  const uint64_t size = RoundUp(address + bytes, kPage) - start;
  const bool reads_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  if (!IsMappedHere(start, start + size, reads_only)) return CUDA_ERROR_INVALID_VALUE;
  // The memory stays the program's.
  sim::HostMemory memory(reinterpret_cast<std::byte*>(start), [](std::byte*) {});
  const CUresult result = MapHostRange(start, size, std::move(memory));
  if (result != CUDA_SUCCESS) return result;
  Enter({.kind = Allocation::Kind::kRegistered,
         .address = address,
         .size = bytes,
         .flags = flags,
         .context_id = context.id});
  return CUDA_SUCCESS;
}

CUresult FreeAllocation(uint64_t address) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  const auto found = book.allocations.find(address);
  if (found == book.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.kind == Allocation::Kind::kPooled) {
    book.pools[found->second.pool].now -= found->second.size;
  }
  Forget(found->second);
  book.allocations.erase(found);
  return CUDA_SUCCESS;
}

std::optional<Allocation> FindAllocation(uint64_t address) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  auto it = book.allocations.upper_bound(address);
  if (it == book.allocations.begin()) return std::nullopt;
  --it;
  if (address - it->first >= it->second.size) return std::nullopt;
  return it->second;
}

void FreeMemoryOf(const Context& context) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  std::erase_if(book.allocations, [&](const auto& entry) {
    if (entry.second.context_id != context.id) return false;
    if (entry.second.kind == Allocation::Kind::kPooled) {
      book.pools[entry.second.pool].now -= entry.second.size;
    }
    Forget(entry.second);
    return true;
  });
}

uint64_t DeviceBytesInUse() { return g_device_bytes.load(); }

PoolUse BytesOfPool(CUmemoryPool pool) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  return book.pools[pool];
}

void ResetHighOfPool(CUmemoryPool pool) {
  Book& book = TheBook();
  const std::lock_guard lock(book.mutex);
  PoolUse& use = book.pools[pool];
  use.high = use.now;
}

}  // namespace iket::simdriver
// NOLINTEND(performance-no-int-to-ptr)
