// SPDX-License-Identifier: Apache-2.0
//
// Marks as NVIDIA's IKET and its followers compile them (docs/design/compat.md), written by hand so
// that the same machine code can be collected by run-iket and by iket. FOREIGN_EXTENDED: events of
// ExtendedNativeDump, for modules of more than 30 names.
#pragma once

#include <cstdint>

namespace foreign {

struct Event {
  uint32_t size, id, method, payload, position, range, length;
  char name[32];
};
static_assert(sizeof(Event) == 60);
struct Range {
  uint32_t size, scope, id, colour, type, pairing, zeros[2], length;
  char name[32];
  uint32_t markers;
};
static_assert(sizeof(Range) == 72);
struct Meta {
  uint32_t size, major, minor, most_events, name_size, event_size, magic, zero, features, zeros[3];
};
static_assert(sizeof(Meta) == 48);

#ifdef FOREIGN_EXTENDED
constexpr uint32_t kMethod = 5, kFirst = 64, kMost = 4095;
#define FOREIGN_STAMP "st.weak.shared.v2.u32 [r], {t, %0};"
#define FOREIGN_JOIN ""
#define FOREIGN_PAYLOAD_AT "8"
#else
constexpr uint32_t kMethod = 3, kFirst = 1, kMost = 31;
#define FOREIGN_STAMP "st.weak.shared.u32 [r], t;"
#define FOREIGN_JOIN "or.b32 t, t, %0; "
#define FOREIGN_PAYLOAD_AT "4"
#endif
constexpr uint32_t kMark = kFirst, kPayloadMark = kFirst + 1, kRange = kFirst + 2, kPop = 31;

}  // namespace foreign

// At global scope: nvcc names such variables there.
extern "C" {
__device__ __attribute__((used)) foreign::Meta __iket_meta_info = {
    48, 0, 5, foreign::kMost, 32, 60, 0xbabef19d, 0, 3, {}};
__device__ __attribute__((used)) foreign::Event __iket_evt_decl_m_attrs = {
    60, foreign::kMark, foreign::kMethod, 0, 0, 0, 1, "m"};
__device__ __attribute__((used)) foreign::Event __iket_evt_decl_p_attrs = {
    60, foreign::kPayloadMark, foreign::kMethod, 6, 0, 0, 1, "p"};
__device__ __attribute__((used)) foreign::Event __iket_evt_decl_r_attrs = {
    60, foreign::kRange, foreign::kMethod, 0, 1, 77, 1, "r"};
__device__ __attribute__((used)) foreign::Range __iket_range_decl_r_attrs = {
    72, 0, 77, 0xffffffff, 2, 0, {}, 1, "r", 0};
}

namespace foreign {

template <uint32_t kId>
__device__ inline void Mark() {
  asm volatile(
      "{.reg .b32 r, t; mov.b32 r, %%cluster_ctarank; mov.u32 t, %%globaltimer_lo; " FOREIGN_JOIN
      "mad.lo.u32 r, r, 0x1000000, 0x3f0; " FOREIGN_STAMP " pmevent.mask %0;}" ::"n"(kId)
      : "memory");
}

template <uint32_t kId>
__device__ inline void Mark(uint32_t payload) {
  asm volatile(
      "{.reg .b32 r, t, m; .reg .pred p; activemask.b32 m; elect.sync _|p, m; "
      "mov.b32 r, %%cluster_ctarank; mov.u32 t, %%globaltimer_lo; " FOREIGN_JOIN
      "mad.lo.u32 r, r, 0x1000000, 0x3f0; @p " FOREIGN_STAMP
      " @p st.weak.shared.b32 [r+" FOREIGN_PAYLOAD_AT "], %1; pmevent.mask %0;}" ::"n"(kId),
      "r"(payload)
      : "memory");
}

}  // namespace foreign
