// layout.h: where rings lie in device memory, and how an address is made from them.
//
// Rings belong to the hardware: one for each warp slot of each SM. Every context that runs patched
// code maps one window of address space, aligned so that the low 32 bits of its base are zero:
//
//   base - 2 MiB          header of ring 0, 1, 2, ...   64 bytes each
//   base                  ring 0                        ring_bytes, a power of two
//   base + ring_bytes     ring 1 ...                    index = SM * 64 + warp slot
//
// A warp keeps four uniform registers that ptxas leaves alone:
//   UR0:UR1  address of the next record    UR2  bytes ever written to this ring (mod 2^32)
//   UR3      low word of the ring's base
// so the address of a record is ((UR2 & (ring_bytes - 1)) | UR3), and that of the ring's header is
// (UR3 >> header_shift) - 2 MiB: one instruction each. The same numbers are immediates of the
// patched code, hence one Layout a process, fixed before the first image is patched.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ring/record.h"

namespace iket::ring {

inline constexpr uint32_t kSlotsPerSm = 64;
inline constexpr uint64_t kWindowAlignment = uint64_t{1} << 32;
inline constexpr uint64_t kTableBytes = uint64_t{2} << 20;
inline constexpr uint32_t kMinRingBytes = 4096;

// One ring's entry of the table. Written by the warp: `begin` and `begin_identity` when it starts,
// `cursor` when it ends; so a warp that hangs, or that overwrote its own begin, is still known.
struct RingHeader {
  uint32_t cursor;  // UR2 when the last warp of this ring ended
  uint32_t reserved[3];
  Record begin;           // copy of the last kBegin record
  Record begin_identity;  // copy of the last kBeginIdentity record
  Record spare;
};
inline constexpr uint32_t kHeaderBytes = 64;
static_assert(sizeof(RingHeader) == kHeaderBytes);

// Offsets within a header of what the trampolines store.
inline constexpr uint32_t kHeaderCursor = 0;
inline constexpr uint32_t kHeaderBegin = 16;
inline constexpr uint32_t kHeaderIdentity = 32;

struct Layout {
  uint32_t ring_bytes = 0;  // a power of two, >= kMinRingBytes
  uint32_t sm_count = 0;    // SM numbers are clamped to [0, sm_count)

  uint32_t ring_count() const { return sm_count * kSlotsPerSm; }
  uint32_t offset_mask() const { return ring_bytes - 1; }
  uint32_t ring_shift() const;    // log2(ring_bytes)
  uint32_t header_shift() const;  // ring_shift - 6
  // Device memory of one window, table included, in bytes; a multiple of 2 MiB.
  uint64_t window_bytes() const;
};

// The layout for rings of `ring_bytes` on GPUs of at most `sm_count` SMs, or an error (kUsage) that
// says which limit is passed: ring_bytes a power of two of at least 4 KiB, a window below 4 GiB.
Result<Layout> MakeLayout(uint64_t ring_bytes, uint32_t sm_count);

// The largest layout with rings of at most `wanted_ring_bytes` whose window takes no more than
// `budget_bytes`; halves the rings until it fits. Error (kNothing) when not even 4 KiB rings fit.
Result<Layout> FitLayout(uint64_t wanted_ring_bytes, uint32_t sm_count, uint64_t budget_bytes);

}  // namespace iket::ring
