// testing_rings.h: ring memory as a guest hands it over, on the device of any libcuda.so.1, written
// from here. For tests and benchmarks.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "ring/layout.h"
#include "session/message.h"

namespace iket::supervisor {

class TestingRings {
 public:
  // `driver` is a path, or empty for the system's. Ends the program where there is no such device.
  TestingRings(const std::string& driver, uint32_t ring_bytes, uint32_t sm_count)
      : layout_(*ring::MakeLayout(ring_bytes, sm_count)),
        library_(dlopen(driver.empty() ? "libcuda.so.1" : driver.c_str(), RTLD_NOW)) {
    if (library_ == nullptr) Give("dlopen", 1);
    CUdevice device = 0;
    CUuuid uuid{};
    Call<decltype(&::cuInit)>("cuInit", 0u);
    Call<decltype(&::cuDeviceGet)>("cuDeviceGet", &device, 0);
    Call<decltype(&::cuDeviceGetUuid_v2)>("cuDeviceGetUuid_v2", &uuid, device);
    Call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context_, device);
    Enter();
    memory_ = {.pid = static_cast<uint32_t>(getpid()),
               .context = 0,
               .ring_bytes = ring_bytes,
               .sm_count = sm_count};
    std::memcpy(memory_.device_uuid.data(), uuid.bytes, sizeof uuid.bytes);
    table_ = Make(device, layout_.table_bytes(), &memory_.table);
    rings_ = Make(device, layout_.rings_bytes(), &memory_.rings);
  }
  ~TestingRings() {
    close(memory_.table);
    close(memory_.rings);
  }
  TestingRings(const TestingRings&) = delete;
  TestingRings& operator=(const TestingRings&) = delete;

  const ring::Layout& layout() const { return layout_; }
  const session::RingMemory& memory() const { return memory_; }

  void Enter() { Call<decltype(&::cuCtxSetCurrent)>("cuCtxSetCurrent", context_); }
  // A warp has started there.
  void Use(uint32_t ring) {
    ring::RingHeader header{};
    header.identity.tag = ring::kTagIdentity;
    PutHeader(ring, header);
  }
  void PutHeader(uint32_t ring, const ring::RingHeader& header) {
    Put(table_ + uint64_t{ring} * ring::kHeaderStride, &header, sizeof header);
  }
  // Position of the record in the ring's stream.
  void PutRecord(uint32_t ring, uint64_t position, const ring::Record& record) {
    const uint64_t at = position * ring::kRecordBytes & layout_.offset_mask();
    Put(rings_ + uint64_t{ring} * layout_.ring_bytes + at, &record, sizeof record);
  }
  // All of a ring.
  void PutRing(uint32_t ring, std::span<const ring::Record> records) {
    Put(rings_ + uint64_t{ring} * layout_.ring_bytes, records.data(), records.size_bytes());
  }
  // Every word of all rings.
  void Fill(uint32_t word) {
    Call<decltype(&::cuMemsetD32_v2)>("cuMemsetD32_v2", rings_, word, layout_.rings_bytes() / 4);
    Call<decltype(&::cuCtxSynchronize)>("cuCtxSynchronize");
  }

 private:
  [[noreturn]] static void Give(const char* name, int result) {
    std::fprintf(stderr, "%s: %d\n", name, result);
    std::abort();
  }
  template <typename Function, typename... Arguments>
  void Call(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) Give(name, 1);
    if (const CUresult result = function(arguments...); result != CUDA_SUCCESS) Give(name, result);
  }
  void Put(CUdeviceptr to, const void* from, size_t bytes) {
    Call<decltype(&::cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2", to, from, bytes);
  }
  CUdeviceptr Make(CUdevice device, size_t bytes, int* descriptor) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    Call<decltype(&::cuMemCreate)>("cuMemCreate", &handle, bytes, &properties, 0ull);
    Call<decltype(&::cuMemExportToShareableHandle)>("cuMemExportToShareableHandle",
                                                    static_cast<void*>(descriptor), handle,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
    Call<decltype(&::cuMemAddressReserve)>("cuMemAddressReserve", &address, bytes, size_t{0},
                                           CUdeviceptr{0}, 0ull);
    Call<decltype(&::cuMemMap)>("cuMemMap", address, bytes, size_t{0}, handle, 0ull);
    Call<decltype(&::cuMemSetAccess)>("cuMemSetAccess", address, bytes, &access, size_t{1});
    Call<decltype(&::cuMemsetD8_v2)>("cuMemsetD8_v2", address, static_cast<unsigned char>(0),
                                     bytes);
    return address;
  }

  ring::Layout layout_;
  void* library_;
  CUcontext context_ = nullptr;
  session::RingMemory memory_;
  CUdeviceptr table_ = 0, rings_ = 0;
};

}  // namespace iket::supervisor
