// What lanes of a warp tell each other: votes, shuffles, matches, reductions, elections.
#include <algorithm>
#include <bit>

#include "sim/bind.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

enum class VoteMode : uint32_t { kAll = 0, kAny = 1, kEqual = 2 };

bool Decide(uint32_t mode, uint32_t votes, uint32_t voters) {
  switch (static_cast<VoteMode>(mode)) {
    case VoteMode::kAll:
      return votes == voters;
    case VoteMode::kAny:
      return votes != 0;
    case VoteMode::kEqual:
      return votes == 0 || votes == voters;
  }
  return false;
}
void Vote(Warp& warp, const Op& op) {
  const uint32_t votes = warp.exec & PredicateAt(warp, op, 87);
  LaneWords out;
  out.v.fill(votes);
  const bool decision = Decide(Bits(op, 72, 2), votes, warp.exec);
  warp.Write(op.d, out);
  warp.WritePredicate(Bits(op, 81, 3), decision ? ~0u : 0);
}
void Voteu(Warp& warp, const Op& op) {
  const uint32_t votes = warp.exec & PredicateAt(warp, op, 87);
  warp.WriteUniform(op.d, votes);
  warp.WriteUniformPredicate(Bits(op, 81, 3), Decide(Bits(op, 72, 2), votes, warp.exec));
}

// SHFL: index, up, down, butterfly; c holds the segment mask in bits 8..12 and the clamp below.
void Shfl(Warp& warp, const Op& op) {
  const uint32_t mode = Bits(op, 58, 2);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  uint32_t in_range = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t delta = b[lane] & 31, segment = c[lane] >> 8 & 31, clamp = c[lane] & 31;
    const uint32_t low = lane & segment, high = low | (clamp & ~segment);
    uint32_t from = 0;
    bool ok = false;
    switch (mode) {
      case 0:
        from = low | (delta & ~segment);
        ok = from <= high;
        break;
      case 1:
        from = lane - delta;
        ok = static_cast<int32_t>(from) >= static_cast<int32_t>(high);
        break;
      case 2:
        from = lane + delta;
        ok = from <= high;
        break;
      default:
        from = lane ^ delta;
        ok = from <= high;
        break;
    }
    if (!ok) from = lane;
    in_range |= uint32_t{ok} << lane;
    // A lane that does not take part has no value: 0 here, as good as any.
    out.v[lane] = (warp.exec >> (from & 31) & 1) != 0 ? a[from & 31] : 0;
  }
  warp.Write(op.d, out);
  warp.WritePredicate(Bits(op, 81, 3), in_range);
}

void Match(Warp& warp, const Op& op) {
  const bool wide = Bit(op, 73), all = !Bit(op, 79);
  const Wide a = WideRow(warp, op.a);
  const auto value = [&](uint32_t lane) { return wide ? a[lane] : uint64_t{a.low[lane]}; };
  LaneWords out;
  out.v.fill(0);
  uint32_t same_everywhere = 0;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    uint32_t same = 0;
    for (uint32_t others = warp.exec; others != 0; others &= others - 1) {
      const auto other = static_cast<uint32_t>(std::countr_zero(others));
      if (value(other) == value(lane)) same |= 1u << other;
    }
    if (same == warp.exec) same_everywhere |= 1u << lane;
    out.v[lane] = all && same != warp.exec ? 0 : same;
  }
  warp.Write(op.d, out);
  if (all) warp.WritePredicate(Bits(op, 81, 3), same_everywhere);
}

void Redux(Warp& warp, const Op& op) {
  const uint32_t function = Bits(op, 78, 3);
  const bool is_signed = Bit(op, 73);
  const uint32_t* const a = warp.Row(op.a);
  bool first = true;
  uint32_t result = 0;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const uint32_t v = a[std::countr_zero(mask)];
    const bool less =
        is_signed ? static_cast<int32_t>(v) < static_cast<int32_t>(result) : v < result;
    if (first) {
      result = v;
      first = false;
      continue;
    }
    switch (function) {
      case 0:
        result &= v;
        break;
      case 1:
        result |= v;
        break;
      case 2:
        result ^= v;
        break;
      case 3:
        result += v;
        break;
      case 4:
        result = less ? v : result;
        break;
      default:
        result = less ? result : v;
        break;
    }
  }
  warp.WriteUniform(op.d, result);
}

// ELECT P, UR: the lowest lane; the register gets its mask.
void Elect(Warp& warp, const Op& op) {
  const uint32_t leader = warp.exec & (0 - warp.exec);
  warp.WriteUniform(op.d, leader);
  warp.WritePredicate(Bits(op, 81, 3), leader);
}

// The first lane's value; the predicate gets the lanes that have another, for loops that serve one
// value after another. With .OR they join those that it has: they differ in one of several words.
void R2ur(Warp& warp, const Op& op) {
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t value = a[warp.FirstLane()];
  uint32_t others = Bit(op, 84) ? warp.ReadPredicate(Bits(op, 81, 3), false) : 0;
  for (uint32_t i = 0; i < kLanes; ++i) others |= uint32_t{a[i] != value} << i;
  warp.WriteUniform(op.d, value);
  warp.WritePredicate(Bits(op, 81, 3), others);
}

}  // namespace

bool IKET_SIM_ISA::BindWarpwide(Op& op) {
  const sass::Instruction& word = op.word;
  switch (word.opcode()) {
    case 0x806:
      op.d = TargetRow(Bits(op, 16, 8));
      if (Bits(op, 72, 2) <= 2) op.run = Vote;
      return true;
    case 0x886:
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      if (Bits(op, 72, 2) <= 2) op.run = Voteu;
      return true;
    case 0x389:
    case 0x589:
    case 0x989:
    case 0xf89: {
      op.latency = Latency::kShared;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      const bool b_immediate = word.opcode() == 0x989 || word.opcode() == 0xf89;
      const bool c_immediate = word.opcode() == 0x589 || word.opcode() == 0xf89;
      op.b = b_immediate ? Operand{.kind = Operand::Kind::kImmediate, .value = Bits(op, 53, 5)}
                         : Operand{.row = SourceRow(Bits(op, 32, 8))};
      op.c = c_immediate ? Operand{.kind = Operand::Kind::kImmediate, .value = Bits(op, 40, 13)}
                         : Operand{.row = SourceRow(Bits(op, 64, 8))};
      op.run = Shfl;
      return true;
    }
    case 0x3a1:
      op.latency = Latency::kShared;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      // .ANY has no predicate.
      if (!Bit(op, 79) || Bits(op, 81, 3) == 7) op.run = Match;
      return true;
    case 0x3c4:
      op.latency = Latency::kShared;
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.a = SourceRow(Bits(op, 24, 8));
      if (Bits(op, 78, 3) <= 5) op.run = Redux;
      return true;
    case 0x82f:
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      // Among all lanes, not those of a predicate.
      if (Bits(op, 87, 4) == 7) op.run = Elect;
      return true;
    case 0x2ca:
    case 0x3c2:
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.a = SourceRow(Bits(op, 24, 8));
      op.run = R2ur;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
