#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "simdriver/testing.h"

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

extern char** environ;

namespace iket::simdriver::testing {
namespace {

using Memory = WithContext;

TEST_F(Memory, GoesThereAndBack) {
  std::vector<int> host(1000);
  std::iota(host.begin(), host.end(), 5);
  const size_t bytes = host.size() * sizeof(int);
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  ASSERT_CU(CU(cuMemAlloc)(&a, bytes));
  ASSERT_CU(CU(cuMemAlloc)(&b, bytes));
  ASSERT_CU(CU(cuMemcpyHtoD)(a, host.data(), bytes));
  ASSERT_CU(CU(cuMemcpyDtoD)(b, a, bytes));
  std::vector<int> back(host.size());
  ASSERT_CU(CU(cuMemcpyDtoH)(back.data(), b, bytes));
  EXPECT_EQ(back, host);
  // Unified: each address says what it is.
  std::vector<int> again(host.size());
  ASSERT_CU(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(again.data()), a, bytes));
  EXPECT_EQ(again, host);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyHtoD)(a + 8, host.data(), bytes));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemFree)(a));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree)(a));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH)(back.data(), a, bytes));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemFree)(b));
}

TEST_F(Memory, IsCountedAndEnds) {
  size_t free_before = 0;
  size_t free_after = 0;
  size_t total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&free_before, &total));
  CUdeviceptr pointer = 0;
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&pointer, total + 1));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&pointer, SIZE_MAX));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(&pointer, 0));
  ASSERT_CU(CU(cuMemAlloc)(&pointer, size_t{1} << 20));
  ASSERT_CU(CU(cuMemGetInfo)(&free_after, &total));
  EXPECT_EQ(free_before - free_after, size_t{1} << 20);
  ASSERT_CU(CU(cuMemFree)(pointer));
  ASSERT_CU(CU(cuMemGetInfo)(&free_after, &total));
  EXPECT_EQ(free_before, free_after);
}

TEST_F(Memory, MemsetsWriteTheirElementsAndNoMore) {
  CUdeviceptr p = 0;
  size_t pitch = 0;
  ASSERT_CU(CU(cuMemAllocPitch)(&p, &pitch, 100, 4, 4));
  ASSERT_CU(CU(cuMemsetD8)(p, 0x11, pitch * 4));
  ASSERT_CU(CU(cuMemsetD2D32)(p, pitch, 0x01020304, 3, 2));
  ASSERT_CU(CU(cuMemsetD16)(p + 3 * pitch, 0xabcd, 5));
  std::vector<unsigned char> all(pitch * 4);
  ASSERT_CU(CU(cuMemcpyDtoH)(all.data(), p, all.size()));
  std::vector<unsigned char> expected(all.size(), 0x11);
  for (size_t row : {size_t{0}, pitch}) {
    for (size_t i = 0; i < 12; ++i) expected[row + i] = static_cast<unsigned char>(4 - i % 4);
  }
  for (size_t i = 0; i < 10; ++i) expected[3 * pitch + i] = i % 2 == 0 ? 0xcd : 0xab;
  EXPECT_EQ(all, expected);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32)(p + 2, 1, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8)(p, 1, pitch * 4 + 1));
  ASSERT_CU(CU(cuMemFree)(p));
}

TEST_F(Memory, ZeroingManyBytesLeavesTheRest) {
  constexpr size_t kBytes = size_t{4} << 20;
  CUdeviceptr p = 0;
  ASSERT_CU(CU(cuMemAlloc)(&p, kBytes));
  ASSERT_CU(CU(cuMemsetD8)(p, 0xff, kBytes));
  ASSERT_CU(CU(cuMemsetD8)(p + 100, 0, kBytes - 200));
  std::vector<unsigned char> all(kBytes);
  ASSERT_CU(CU(cuMemcpyDtoH)(all.data(), p, kBytes));
  for (size_t i = 0; i < kBytes; ++i) {
    ASSERT_EQ(all[i], i < 100 || i >= kBytes - 100 ? 0xff : 0) << i;
  }
  ASSERT_CU(CU(cuMemFree)(p));
}

TEST_F(Memory, CopiesOfBoxesUsePitchAndOffset) {
  // A 3 x 4 x 2 box out of host memory of 10-byte rows, into device memory of 512-byte rows.
  std::vector<unsigned char> host(10 * 6 * 3);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(0));
  CUdeviceptr p = 0;
  ASSERT_CU(CU(cuMemAlloc)(&p, 512 * 8 * 3));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 10;
  copy.srcHeight = 6;
  copy.srcXInBytes = 2;
  copy.srcY = 1;
  copy.srcZ = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = p;
  copy.dstPitch = 512;
  copy.dstHeight = 8;
  copy.dstXInBytes = 5;
  copy.WidthInBytes = 3;
  copy.Height = 4;
  copy.Depth = 2;
  ASSERT_CU(CU(cuMemcpy3D)(&copy));
  std::vector<unsigned char> all(512 * 8 * 3);
  ASSERT_CU(CU(cuMemcpyDtoH)(all.data(), p, all.size()));
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 4; ++y) {
      for (size_t x = 0; x < 3; ++x) {
        EXPECT_EQ(all[(z * 8 + y) * 512 + 5 + x], host[((z + 1) * 6 + y + 1) * 10 + 2 + x]);
      }
    }
  }
  copy.srcPitch = 3;  // less than offset and width
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy3D)(&copy));
  ASSERT_CU(CU(cuMemFree)(p));
}

TEST_F(Memory, RowsThatReachPastAllAddressesAreRefused) {
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAlloc)(&memory, 4096));
  std::byte host[64] = {};
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 16;
  copy.Height = size_t{1} << 60;  // 16 times that is 0, in 64 bits
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy2D)(&copy));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy2DAsync)(&copy, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD2D8)(memory, 16, 1, 16, size_t{1} << 60));
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemFree)(memory));
}

TEST_F(Memory, OnlyPagesThatAreThereAreRegistered) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const second = static_cast<std::byte*>(pages) + page;
  ASSERT_EQ(munmap(second, page), 0);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemHostRegister)(pages, 3 * page, 0));
  ASSERT_EQ(mprotect(pages, page, PROT_READ), 0);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemHostRegister)(pages, page, 0));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemHostRegister)(second + page, page, 0));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemHostUnregister)(second + page));
  munmap(pages, page);
  munmap(second + page, page);
}

TEST_F(Memory, PageableSourceMayChangeAfterAnAsynchronousCopy) {
  CUdeviceptr p = 0;
  CUdeviceptr gate = 0;
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(CU(cuMemAlloc)(&p, 4));
  ASSERT_CU(CU(cuMemAlloc)(&gate, 4));
  ASSERT_CU(CU(cuMemsetD32)(gate, 0, 1));
  ASSERT_CU(CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuStreamWaitValue32)(stream, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
  int value = 42;
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(p, &value, 4, stream));
  value = 0;
  EXPECT_CU(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(stream));
  const int open = 1;
  ASSERT_CU(CU(cuMemcpyHtoD)(gate, &open, 4));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  int back = 0;
  ASSERT_CU(CU(cuMemcpyDtoH)(&back, p, 4));
  EXPECT_EQ(back, 42);
  ASSERT_CU(CU(cuStreamDestroy)(stream));
}

TEST_F(Memory, HostMemoryIsSeenAtItsOwnAddress) {
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, 100, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr seen = 0;
  ASSERT_CU(CU(cuMemHostGetDevicePointer)(&seen, pinned, 0));
  EXPECT_EQ(seen, reinterpret_cast<CUdeviceptr>(pinned));
  ASSERT_CU(CU(cuMemsetD8)(seen, 0x5a, 100));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(static_cast<char*>(pinned)[99], 0x5a);
  unsigned type = 0;
  ASSERT_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, seen));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree)(seen));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemFreeHost)(pinned));

  std::vector<char> own(10000);
  ASSERT_CU(CU(cuMemHostRegister)(own.data(), own.size(), 0));
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            CU(cuMemHostRegister)(own.data(), own.size(), 0));
  ASSERT_CU(CU(cuMemHostGetDevicePointer)(&seen, own.data(), 0));
  ASSERT_CU(CU(cuMemsetD8)(seen, 1, own.size()));
  ASSERT_CU(CU(cuMemHostUnregister)(own.data()));
  EXPECT_EQ(own[9999], 1);
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, CU(cuMemHostUnregister)(own.data()));
  int stack = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      reinterpret_cast<CUdeviceptr>(&stack)));
}

TEST_F(Memory, FreesInAStreamHappenInOrder) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = nullptr;
  ASSERT_CU(CU(cuDeviceGetDefaultMemPool)(&pool, device));
  cuuint64_t used = 0;
  CUdeviceptr p = 0;
  ASSERT_CU(CU(cuMemAllocAsync)(&p, 4096, stream));
  ASSERT_CU(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 4096u);
  int back = 0;
  ASSERT_CU(CU(cuMemsetD32Async)(p, 9, 1024, stream));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(&back, p, 4, stream));
  ASSERT_CU(CU(cuMemFreeAsync)(p, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(back, 9);
  ASSERT_CU(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeAsync)(p, stream));
}

// --- virtual memory ------------------------------------------------------------------------------

constexpr size_t kGranule = size_t{2} << 20;

CUmemAllocationProp Shareable() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUresult Allow(CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CU(cuMemSetAccess)(address, bytes, &access, 1);
}

TEST_F(Memory, OnePieceMayBeMappedInManyPlaces) {
  const CUmemAllocationProp properties = Shareable();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  ASSERT_CU(CU(cuMemCreate)(&handle, kGranule, &properties, 0));
  // As the collector does it: 4 GiB aligned, and the same piece again and again.
  ASSERT_CU(CU(cuMemAddressReserve)(&base, 4 * kGranule, size_t{1} << 32, 0, 0));
  EXPECT_EQ(base & 0xffffffff, 0u);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(base, 2 * kGranule, 0, handle, 0));
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_CU(CU(cuMemMap)(base + i * kGranule, kGranule, 0, handle, 0));
  }
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(base, kGranule, 0, handle, 0));
  // Mapped is not yet accessible.
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8)(base, 1, 8));
  ASSERT_CU(Allow(base, 4 * kGranule));
  ASSERT_CU(CU(cuMemRelease)(handle));  // what is mapped lives on
  // One memset over pieces that are not neighbours on the host.
  ASSERT_CU(CU(cuMemsetD8)(base + kGranule - 4, 7, 8));
  std::vector<unsigned char> all(kGranule);
  ASSERT_CU(CU(cuMemcpyDtoH)(all.data(), base + 3 * kGranule, kGranule));
  EXPECT_EQ(all[0], 7);
  EXPECT_EQ(all[3], 7);
  EXPECT_EQ(all[4], 0);
  EXPECT_EQ(all[kGranule - 1], 7);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(base, 4 * kGranule));
  ASSERT_CU(CU(cuMemUnmap)(base, 4 * kGranule));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH)(all.data(), base, 8));
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemAddressFree)(base, 4 * kGranule));
}

TEST_F(Memory, AnotherProcessMapsTheSameBytes) {
  const CUmemAllocationProp properties = Shareable();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  ASSERT_CU(CU(cuMemCreate)(&handle, kGranule, &properties, 0));
  ASSERT_CU(CU(cuMemAddressReserve)(&base, kGranule, 0, 0, 0));
  ASSERT_CU(CU(cuMemMap)(base, kGranule, 0, handle, 0));
  ASSERT_CU(Allow(base, kGranule));
  ASSERT_CU(CU(cuMemsetD32)(base, 1234, 1));
  ASSERT_CU(CU(cuCtxSynchronize)());
  int descriptor = -1;
  ASSERT_CU(CU(cuMemExportToShareableHandle)(&descriptor, handle,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ASSERT_EQ(fcntl(descriptor, F_SETFD, 0), 0);  // the child inherits it
  const std::string number = std::to_string(descriptor);
  const char* arguments[] = {IKET_SIM_PEER, IKET_SIM_LIBRARY, number.c_str(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, IKET_SIM_PEER, nullptr, nullptr,
                        const_cast<char* const*>(arguments), environ),
            0);
  close(descriptor);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // The child has seen 1234 and has written 4321.
  int value = 0;
  ASSERT_CU(CU(cuMemcpyDtoH)(&value, base, 4));
  EXPECT_EQ(value, 4321);
}

// What the program prints, where it has closed a standard stream, must not land in the device.
TEST_F(Memory, DescriptorsAreNoStandardStreams) {
  const CUmemAllocationProp properties = Shareable();
  CUmemGenericAllocationHandle handle = 0;
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(STDIN_FILENO);
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, kGranule, &properties, 0));
  EXPECT_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
  int descriptor = -1;
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemExportToShareableHandle)(
                              &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT_GT(descriptor, STDERR_FILENO);
  close(descriptor);
  if (input >= 0) dup2(input, STDIN_FILENO), close(input);
  EXPECT_CU(CUDA_SUCCESS, CU(cuMemRelease)(handle));
}

TEST_F(Memory, ALimitToTheSizeOfFilesIsAFailure) {
  const CUmemAllocationProp properties = Shareable();
  CUmemGenericAllocationHandle handle = 0;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit less{.rlim_cur = kGranule / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemCreate)(&handle, kGranule, &properties, 0));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(Memory, ADescriptorOfSomethingElseIsRefused) {
  CUmemGenericAllocationHandle handle = 0;
  const auto import = [&](intptr_t descriptor) {
    return CU(cuMemImportFromShareableHandle)(&handle, reinterpret_cast<void*>(descriptor),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, import(-1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, import(12345));
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, import(file));
  close(file);
}

}  // namespace
}  // namespace iket::simdriver::testing
// NOLINTEND(performance-no-int-to-ptr)
