#include "ring/layout.h"

#include <algorithm>
#include <bit>

namespace iket::ring {
namespace {

constexpr uint64_t kGranularity = uint64_t{2} << 20;
constexpr uint32_t kHeaderStrideShift = std::countr_zero(kHeaderStride);

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kGranularity - 1) / kGranularity * kGranularity;
}

// All rings lie in one window.
uint64_t MostRingBytes(uint32_t sm_count) {
  return std::bit_floor(kWindowAlignment / (uint64_t{sm_count} * kSlotsPerSm));
}

}  // namespace

uint32_t Layout::ring_shift() const { return std::countr_zero(ring_bytes); }

uint32_t Layout::header_shift() const { return ring_shift() - kHeaderStrideShift; }

uint64_t Layout::table_bytes() const { return RoundUp(uint64_t{ring_count()} * kHeaderStride); }

uint64_t Layout::rings_bytes() const { return RoundUp(uint64_t{ring_count()} * ring_bytes); }

Result<Layout> MakeLayout(uint64_t ring_bytes, uint32_t sm_count) {
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kMinRingBytes) {
    return Fail(ErrorKind::kUsage, "a ring of {} bytes: give a power of two of at least {}",
                ring_bytes, kMinRingBytes);
  }
  if (sm_count == 0 || sm_count > kMaxSms) {
    return Fail(ErrorKind::kUsage, "{} SMs: the ring table holds 1 to {}", sm_count, kMaxSms);
  }
  if (ring_bytes > MostRingBytes(sm_count)) {
    return Fail(ErrorKind::kUsage,
                "rings of {} bytes for {} SMs take more than a window of 4 GiB: give at most {}",
                ring_bytes, sm_count, MostRingBytes(sm_count));
  }
  return Layout{.ring_bytes = static_cast<uint32_t>(ring_bytes), .sm_count = sm_count};
}

Result<Layout> FitLayout(uint64_t wanted_ring_bytes, uint32_t sm_count, uint64_t budget_bytes) {
  // What is no power of two, or for no SM, is MakeLayout's to refuse.
  uint64_t largest = wanted_ring_bytes;
  if (std::has_single_bit(largest) && sm_count != 0) {
    largest = std::min(largest, MostRingBytes(sm_count));
  }
  for (uint64_t ring_bytes = largest; ring_bytes >= kMinRingBytes; ring_bytes /= 2) {
    auto layout = MakeLayout(ring_bytes, sm_count);
    if (!layout) return layout;
    if (layout->window_bytes() <= budget_bytes) return layout;
  }
  return Fail(
      ErrorKind::kNothing,
      "no room for rings: {} SMs need {} bytes even with {}-byte rings, {} are allowed (--memory)",
      sm_count, uint64_t{sm_count} * kSlotsPerSm * (kMinRingBytes + kHeaderStride), kMinRingBytes,
      budget_bytes);
}

}  // namespace iket::ring
