// lanes.h: the loops over the lanes of a warp that handlers are made of. Written so that the
// compiler turns them into vector code: all 32 lanes are computed, those under `exec` are kept.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "sim/op.h"
#include "sim/warp.h"

namespace iket::sim {

// d = f(b)
template <typename F>
inline void MapB(Warp& warp, const Op& op, F f) {
  LaneWords scratch, out;
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = f(b[i]);
  warp.Write(op.d, out);
}
// d = f(a, b)
template <typename F>
inline void MapAB(Warp& warp, const Op& op, F f) {
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = f(a[i], b[i]);
  warp.Write(op.d, out);
}
// d = f(a, b, c)
template <typename F>
inline void MapABC(Warp& warp, const Op& op, F f) {
  LaneWords scratch_b, scratch_c, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch_b);
  const uint32_t* const c = warp.Words(op.c, scratch_c);
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = f(a[i], b[i], c[i]);
  warp.Write(op.d, out);
}

// The lanes whose word has its top bit set: what vector comparisons leave behind, as a mask.
inline uint32_t SignMask(const LaneWords& words) {
  uint32_t mask = 0;
#if defined(__AVX2__)
  for (uint32_t i = 0; i < kLanes; i += 8) {
    __m256 eight;
    std::memcpy(&eight, &words.v[i], sizeof eight);
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(eight)) << i;
  }
#elif defined(__SSE2__)
  for (uint32_t i = 0; i < kLanes; i += 4) {
    __m128 four;
    std::memcpy(&four, &words.v[i], sizeof four);
    mask |= static_cast<uint32_t>(_mm_movemask_ps(four)) << i;
  }
#else
  for (uint32_t i = 0; i < kLanes; ++i) mask |= words.v[i] >> 31 << i;
#endif
  return mask;
}

// The lanes for which f(lane) holds.
template <typename F>
inline uint32_t LanesWhere(F f) {
  LaneWords flags;
  for (uint32_t i = 0; i < kLanes; ++i) flags.v[i] = f(i) ? ~0u : 0;
  return SignMask(flags);
}

// The lanes of a 64-bit source, low and high words.
struct Wide {
  const uint32_t* low;
  const uint32_t* high;
  uint64_t operator[](uint32_t lane) const { return uint64_t{high[lane]} << 32 | low[lane]; }
};
struct WideScratch {
  LaneWords low, high;
};
inline Wide WideRow(Warp& warp, uint32_t row) {
  return {warp.Row(row), warp.Row(row == kZeroRow ? kZeroRow : row + 1)};
}
inline Wide WideWords(Warp& warp, const Operand& operand, WideScratch& scratch) {
  return {warp.Words(operand, scratch.low), warp.HighWords(operand, scratch.high)};
}
inline void WriteWide(Warp& warp, uint32_t row, const LaneWords& low, const LaneWords& high) {
  warp.Write(row, low);
  warp.Write(row + 1, high);
}

// The bits of an instruction, by position and width; and a predicate source whose "not" is the bit
// three above.
inline uint32_t Bits(const Op& op, uint32_t position, uint32_t width) {
  return op.word.Bits(position, width);
}
inline bool Bit(const Op& op, uint32_t position) { return op.word.Bits(position, 1) != 0; }
inline uint32_t PredicateAt(const Warp& warp, const Op& op, uint32_t position) {
  return warp.ReadPredicate(Bits(op, position, 3), Bit(op, position + 3));
}
inline bool UniformPredicateAt(const Warp& warp, const Op& op, uint32_t position) {
  return warp.uniform_predicate[Bits(op, position, 3)] != Bit(op, position + 3);
}

}  // namespace iket::sim
