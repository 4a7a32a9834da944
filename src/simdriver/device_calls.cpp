// Devices: there is one, and what it is.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "simdriver/call.h"
#include "simdriver/device.h"

namespace iket::simdriver {
namespace {

constexpr char kPciBusId[] = "0000:00:00.0";
// The same in every process: a supervisor finds the guest's device by it.
constexpr char kUuid[] = "iket-sim-device";
static_assert(sizeof kUuid == sizeof(CUuuid));

CUresult GetUuid(CUuuid* uuid, CUdevice device) {
  return Call([&] {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::memcpy(uuid->bytes, kUuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
  });
}

// A name into a buffer of `size` bytes, cut if need be.
CUresult CopyText(char* to, int size, std::string_view text) {
  if (to == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t length = std::min(text.size(), static_cast<size_t>(size) - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
  return CUDA_SUCCESS;
}

int Attribute(CUdevice_attribute attribute) {
  int value = 0;
  DeviceAttribute(attribute, &value);
  return value;
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuDeviceGetCount(int* count) {
  return Call([&] {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return Call([&] {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return Call([&] {
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return CopyText(name, size, Model().name);
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return GetUuid(uuid, device); }
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return GetUuid(uuid, device); }

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return Call([&] {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = Model().memory_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return Call([&] {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return DeviceAttribute(attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return Call([&] {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *major = static_cast<int>(Model().compute_major);
    *minor = static_cast<int>(Model().compute_minor);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return Call([&] {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *properties = {};
    properties->maxThreadsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    properties->maxThreadsDim[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    properties->maxThreadsDim[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    properties->maxThreadsDim[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    properties->maxGridSize[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    properties->maxGridSize[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    properties->maxGridSize[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    properties->sharedMemPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->totalConstantMemory = Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->SIMDWidth = Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    properties->memPitch = Attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->regsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    properties->clockRate = Attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    properties->textureAlign = Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  return Call([&] {
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return CopyText(id, size, kPciBusId);
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return Call([&] {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0;
    const bool full = std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) == 3;
    if (!full && std::sscanf(id, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
    if (domain != 0 || bus != 0 || slot != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return Call([&] {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = 0;  // to itself
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  return Call([&] {
    if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *supported = 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
