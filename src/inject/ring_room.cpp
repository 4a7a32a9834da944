#include "inject/ring_room.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "inject/driver.h"
#include "inject/settings.h"
#include "session/message.h"

namespace iket::inject {
namespace {

constexpr uint64_t kDefaultRingBytes = 32 << 10;
// Where nobody says more or less, rings take at the most so much of the smallest GPU's memory.
constexpr uint64_t kMemoryShare = 16;

// A number of bytes that was asked for, or the one that nobody has to ask for. Error (kUsage): it
// is no number.
Result<uint64_t> BytesOf(const char* variable, uint64_t otherwise) {
  const std::string wanted = Setting(variable);
  if (wanted.empty()) return otherwise;
  uint64_t bytes = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data(), end, bytes);
  if (error == std::errc() && rest == end && bytes != 0) return bytes;
  return Fail(ErrorKind::kUsage, "{}={} is no number of bytes; leave it out to have {}", variable,
              wanted, otherwise);
}

}  // namespace

Result<RingRoom> ChooseRingRoom() {
  const RealDriver& real = Real();
  int count = 0;
  if (real.DeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
    return Fail(ErrorKind::kSystem, "no GPU");
  }
  uint64_t memory = UINT64_MAX;
  int most_sms = 0;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    size_t bytes = 0;
    int sms = 0;
    if (real.DeviceGet(&device, i) != CUDA_SUCCESS ||
        real.DeviceTotalMem(&bytes, device) != CUDA_SUCCESS ||
        real.DeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) !=
            CUDA_SUCCESS) {
      return Fail(ErrorKind::kSystem, "GPU {} does not answer", i);
    }
    memory = std::min<uint64_t>(memory, bytes);
    most_sms = std::max(most_sms, sms);
  }
  const auto ring_bytes = BytesOf(session::kEnvRingBytes, kDefaultRingBytes);
  // In the host's memory rings take none of a GPU's.
  const bool in_flight = Setting(session::kEnvFlight) == "1";
  const auto most = in_flight ? Result<uint64_t>(UINT64_MAX)
                              : BytesOf(session::kEnvMemoryBytes, memory / kMemoryShare);
  if (!ring_bytes || !most) return tl::unexpected((ring_bytes ? most : ring_bytes).error());
  const auto layout = ring::FitLayout(*ring_bytes, static_cast<uint32_t>(most_sms), *most);
  if (!layout) return tl::unexpected(layout.error());
  return RingRoom{.layout = *layout,
                  .wanted_ring_bytes = *ring_bytes,
                  .memory_bytes = *most,
                  .in_flight = in_flight};
}

}  // namespace iket::inject
