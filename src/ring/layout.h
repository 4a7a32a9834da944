// layout.h: where rings lie in device memory, and how an address is made from them.
//
// Rings belong to the hardware: one for each warp slot of each SM. Every context that runs patched
// code maps one window of address space, aligned so that the low 32 bits of its base are zero:
//
//   base - 8 MiB          header of ring 0, 1, 2, ...   one every 256 bytes
//   base                  ring 0                        ring_bytes, a power of two
//   base + ring_bytes     ring 1 ...                    index = SM * 64 + warp slot
//
// A warp keeps four uniform registers that ptxas leaves alone:
//   UR0:UR1  address of the record that is being written    UR2  bytes ever written to this ring
//   UR3      low word of the ring's base
// UR0 is made anew for each record, ((UR2 & (ring_bytes - 1)) | UR3), and for the ring's header,
// (UR3 >> header_shift) - 8 MiB: one instruction each. The same numbers are immediates of
// the patched code, hence one Layout a process, fixed before the first image is patched.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ring/record.h"

namespace iket::ring {

inline constexpr uint32_t kSlotsPerSm = 64;
inline constexpr uint64_t kWindowAlignment = uint64_t{1} << 32;
inline constexpr uint64_t kTableOffset = uint64_t{8} << 20;  // the table begins so far below base
// Warps that are left out have a window of sinks: its base is the window's with this bit set, which
// the window's own has not. So a warp comes there by an OR, and again by another.
inline constexpr uint64_t kSinkBit = uint64_t{2} << 32;
inline constexpr uint32_t kHeaderStride = 256;
inline constexpr uint32_t kMaxSms = 512;
inline constexpr uint32_t kMinRingBytes = 4096;
static_assert(uint64_t{kMaxSms} * kSlotsPerSm * kHeaderStride == kTableOffset);

// One ring's entry of the table, written by the warp: `identity` when it starts, the rest when it
// ends (each time some of its lanes end). So a warp that hangs, or whose ring has lapped its begin,
// is still known. A warp is running, or died, when the record at `cursor` is a begin whose
// `previous end` is `end_clock`, or when any record of the ring is younger than `end_clock`.
struct RingHeader {
  uint32_t cursor;         // bytes ever written (mod 2^32) when the last warp of this ring ended
  uint32_t end_clock;      // %clock of that moment
  uint32_t end_timer_low;  // %globaltimer, ns
  uint32_t end_timer_high;
  Record identity;  // the identity record of the warp that started last
  Record spare[2];

  uint64_t end_timer() const { return uint64_t{end_timer_high} << 32 | end_timer_low; }
};
inline constexpr uint32_t kHeaderBytes = 64;  // of the kHeaderStride, the rest is unused
static_assert(sizeof(RingHeader) == kHeaderBytes);

// Offsets within a header of what the trampolines store.
inline constexpr uint32_t kHeaderEnd = 0;
inline constexpr uint32_t kHeaderIdentity = 16;

struct Layout {
  uint32_t ring_bytes = 0;  // a power of two, >= kMinRingBytes
  uint32_t sm_count = 0;    // SM numbers are clamped to [0, sm_count)

  uint32_t ring_count() const { return sm_count * kSlotsPerSm; }
  uint32_t offset_mask() const { return ring_bytes - 1; }
  uint32_t ring_shift() const;    // log2(ring_bytes)
  uint32_t header_shift() const;  // ring_shift - 8
  // Device memory of the table and of the rings, each a multiple of 2 MiB, and of both.
  uint64_t table_bytes() const;
  uint64_t rings_bytes() const;
  uint64_t window_bytes() const { return table_bytes() + rings_bytes(); }
};

// The layout for rings of `ring_bytes` on GPUs of at most `sm_count` SMs, or an error (kUsage) that
// says which limit is passed: ring_bytes a power of two of at least 4 KiB, a window below 4 GiB.
Result<Layout> MakeLayout(uint64_t ring_bytes, uint32_t sm_count);

// The largest layout with rings of at most `wanted_ring_bytes` whose window takes no more than
// `budget_bytes` nor more than 4 GiB; halves the rings until it fits. Error (kNothing) when not
// even 4 KiB rings fit.
Result<Layout> FitLayout(uint64_t wanted_ring_bytes, uint32_t sm_count, uint64_t budget_bytes);

}  // namespace iket::ring
