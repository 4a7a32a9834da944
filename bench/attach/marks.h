// SPDX-License-Identifier: Apache-2.0
//
// The marks of attach.cu in two dialects: iket's, or with ATTACH_NVIDIA those that NVIDIA's
// run-iket collects. One source, so that both tools see the same work.
//
//   ATTACH_MARK()  a point in time      ATTACH_PUSH() ... ATTACH_POP()  a range
//
// NVIDIA publishes no header for C++. What stands here is NVIDIA's metadata format as of
// nvidia-cutlass-dsl 4.8.1: byte arrays of known names, whose words are little-endian, and a store
// and a PMTRIG an event, which the tool rewrites.
#pragma once

#if defined(ATTACH_NVIDIA)

#define ATTACH_WORD(x) (x) & 255, (x) >> 8 & 255, (x) >> 16 & 255, (x) >> 24 & 255
#define ATTACH_BYTES(name, size) \
  __device__ __attribute__((used, aligned(1))) unsigned char name[size]

extern "C" {
// Size, id, method (3: the store below), payload type, position (0 mark, 1 begin of a range),
// range, 1; then the name, of 32 bytes.
ATTACH_BYTES(__iket_evt_decl_m_1_attrs, 60) = {
    ATTACH_WORD(60u), ATTACH_WORD(1u), ATTACH_WORD(3u), ATTACH_WORD(0u),
    ATTACH_WORD(0u),  ATTACH_WORD(0u), ATTACH_WORD(1u), 'm'};
ATTACH_BYTES(__iket_evt_decl_r_2_attrs, 60) = {
    ATTACH_WORD(60u), ATTACH_WORD(2u),  ATTACH_WORD(3u), ATTACH_WORD(0u),
    ATTACH_WORD(1u),  ATTACH_WORD(77u), ATTACH_WORD(1u), 'r'};
// Size, 0, id, colour, type (2: push and pop), scope, pairing, 0, 1; then the name.
ATTACH_BYTES(__iket_range_decl_r_77_attrs, 72) = {
    ATTACH_WORD(72u), ATTACH_WORD(0u), ATTACH_WORD(77u), ATTACH_WORD(0xffffffffu), ATTACH_WORD(2u),
    ATTACH_WORD(0u),  ATTACH_WORD(0u), ATTACH_WORD(0u),  ATTACH_WORD(1u),          'r'};
// Size, version 0.5, the largest id (which is pop's), bytes of a name, bytes of an event's
// declaration, magic, not legacy, features; the rest is 0.
ATTACH_BYTES(__iket_meta_info, 48) = {ATTACH_WORD(48u),         ATTACH_WORD(0u),  ATTACH_WORD(5u),
                                      ATTACH_WORD(31u),         ATTACH_WORD(32u), ATTACH_WORD(60u),
                                      ATTACH_WORD(0xBABEF19Du), ATTACH_WORD(0u),  ATTACH_WORD(3u)};
}

#define ATTACH_EVENT(id)                              \
  asm volatile(                                       \
      "{.reg .b32 place, time;\n\t"                   \
      "mov.b32 place, %%cluster_ctarank;\n\t"         \
      "mov.u32 time, %%globaltimer_lo;\n\t"           \
      "or.b32 time, time, %0;\n\t"                    \
      "mad.lo.u32 place, place, 0x1000000, 0x20;\n\t" \
      "st.weak.shared.u32 [place], time;\n\t"         \
      "pmevent.mask %0;}" ::"n"(id)                   \
      : "memory")
#define ATTACH_MARK() ATTACH_EVENT(1)
#define ATTACH_PUSH() ATTACH_EVENT(2)
#define ATTACH_POP() ATTACH_EVENT(31)

#else

#include <iket/iket.cuh>

using iket::literals::operator""_ev;

#define ATTACH_MARK() iket::mark("m"_ev)
#define ATTACH_PUSH() iket::push("r"_ev)
#define ATTACH_POP() iket::pop()

#endif
