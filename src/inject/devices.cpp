#include "inject/devices.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "inject/driver.h"

namespace iket::inject {
namespace {

// 0 if the driver does not answer.
uint32_t CapabilityOf(CUdevice device) {
  const RealDriver& real = Real();
  int major = 0, minor = 0;
  if (real.DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
          CUDA_SUCCESS ||
      real.DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return static_cast<uint32_t>(major * 10 + minor);
}

std::vector<uint32_t> AskCapabilities() {
  const RealDriver& real = Real();
  std::vector<uint32_t> all;
  int count = 0;
  if (!real.usable || real.DeviceGetCount(&count) != CUDA_SUCCESS) return {};
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    const uint32_t capability =
        real.DeviceGet(&device, i) == CUDA_SUCCESS ? CapabilityOf(device) : 0;
    if (capability == 0) return {};
    all.push_back(capability);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

std::span<const uint32_t> Capabilities() {
  // Never destroyed, since hooks may run until the end of the process.
  static std::atomic<const std::vector<uint32_t>*> known{nullptr};
  if (const auto* all = known.load(std::memory_order_acquire)) return *all;
  auto asked = std::make_unique<const std::vector<uint32_t>>(AskCapabilities());
  // An answer that there is none is not kept: it may have come too early.
  if (asked->empty()) return {};
  const std::vector<uint32_t>* other = nullptr;
  if (!known.compare_exchange_strong(other, asked.get())) return *other;
  return *asked.release();
}

uint32_t CurrentCapability() {
  CUdevice device = 0;
  if (!Real().usable || Real().CtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  return CapabilityOf(device);
}

bool RunsOn(const cubin::FatbinEntry& entry, uint32_t capability) {
  if ((entry.flags & cubin::kEntryArchSpecific) != 0) return entry.sm == capability;
  const bool same_family = entry.sm / 10 == capability / 10;
  if (entry.kind == cubin::EntryKind::kPtx && (entry.flags & cubin::kEntryFamily) == 0) {
    return entry.sm <= capability;
  }
  return same_family && entry.sm <= capability;
}

bool RunsHere(const cubin::FatbinEntry& entry) {
  const auto capabilities = Capabilities();
  return capabilities.empty() ||
         std::any_of(capabilities.begin(), capabilities.end(),
                     [&](uint32_t capability) { return RunsOn(entry, capability); });
}

bool RunsHere(const cubin::Image& code) {
  cubin::FatbinEntry entry;
  entry.sm = static_cast<uint32_t>(code.sm());
  if (code.arch_specific()) entry.flags = cubin::kEntryArchSpecific;
  return RunsHere(entry);
}

}  // namespace iket::inject
