// Tensor cores (HMMA) and the loads and stores that feed them.
//
// A product of matrices is summed in fp32 in the order of k; a GPU sums in another order and with
// other intermediate widths, so results agree to 2^-10 of the sum of |a b|, not bit for bit.
#include <cstring>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/memory_access.h"

namespace iket::sim {
namespace {

// D[16][8] = A[16][k] B[k][8] + C, k = 8 or 16. Lane 4 g + t holds of A rows g and g + 8, columns
// 2 t and 2 t + 1 (and 8 more); of B column g; of C and D rows g and g + 8, columns 2 t, 2 t + 1.
template <uint32_t kK, bool kFloatResult, bool kBfloat>
void Hmma(Warp& warp, const Op& op) {
  if (warp.exec != kAllLanes) {
    warp.Raise(Fault::Kind::kUnsupported, warp.FirstLane(), 0,
               "a matrix product of part of a warp");
    return;
  }
  const auto number = [](uint32_t h) {
    return kBfloat ? FloatFromBfloat(static_cast<uint16_t>(h))
                   : FloatFromHalf(static_cast<uint16_t>(h));
  };
  float a[16][kK], b[kK][8], d[16][8];
  const uint32_t* const ra = warp.Row(op.a);
  const uint32_t* const rb = warp.Row(op.b.row);
  const uint32_t* const rc = warp.Row(op.c.row);
  const bool zero_a = op.a == kZeroRow, zero_b = op.b.row == kZeroRow,
             zero_c = op.c.row == kZeroRow;
  const auto word = [](const uint32_t* row, bool zero, uint32_t reg, uint32_t lane) {
    return zero ? 0 : row[reg * kLanes + lane];
  };
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t reg = 0; reg < kK / 4; ++reg) {
      const uint32_t v = word(ra, zero_a, reg, lane);
      float* const to = &a[g + 8 * (reg & 1)][2 * t + 8 * (reg >> 1)];
      to[0] = number(v & 0xffff);
      to[1] = number(v >> 16);
    }
    for (uint32_t reg = 0; reg < kK / 8; ++reg) {
      const uint32_t v = word(rb, zero_b, reg, lane);
      b[2 * t + 8 * reg][g] = number(v & 0xffff);
      b[2 * t + 8 * reg + 1][g] = number(v >> 16);
    }
    for (uint32_t row = 0; row < 2; ++row) {
      float* const to = &d[g + 8 * row][2 * t];
      if (kFloatResult) {
        to[0] = AsFloat(word(rc, zero_c, 2 * row, lane));
        to[1] = AsFloat(word(rc, zero_c, 2 * row + 1, lane));
      } else {
        const uint32_t v = word(rc, zero_c, row, lane);
        to[0] = number(v & 0xffff);
        to[1] = number(v >> 16);
      }
    }
  }
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < kK; ++k) {
      for (uint32_t j = 0; j < 8; ++j) d[i][j] += a[i][k] * b[k][j];
    }
  }
  uint32_t* const rd = warp.Row(op.d);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t row = 0; row < 2; ++row) {
      const float* const from = &d[g + 8 * row][2 * t];
      if (kFloatResult) {
        rd[2 * row * kLanes + lane] = Canonical(from[0]);
        rd[(2 * row + 1) * kLanes + lane] = Canonical(from[1]);
      } else {
        rd[row * kLanes + lane] = uint32_t{HalfFromFloat(from[1])} << 16 | HalfFromFloat(from[0]);
      }
    }
  }
}

uint64_t RowAddress(Warp& warp, const Op& op, uint32_t uniform_at, uint32_t lane) {
  uint64_t address = warp.Row(op.a)[lane];
  address += static_cast<uint64_t>(static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8);
  if (op.word.is_uniform_form()) address += warp.uniform[Bits(op, uniform_at, 6)];
  return address & 0xffffffffu;
}
// LDSM: matrices of 8 rows of 16 bytes; lane 8 m + r says where row r of matrix m is.
void Ldsm(Warp& warp, const Op& op) {
  const uint32_t count = 1u << Bits(op, 72, 2);
  const bool transposed = Bits(op, 78, 2) == 1;
  // All is read before anything is written: the addresses may stand in a register of the result.
  uint16_t tiles[4][8][8];
  for (uint32_t lane = 0; lane < 8 * count; ++lane) {
    const std::byte* const bytes =
        Access(warp, Space::kShared, lane, RowAddress(warp, op, 32, lane), 16, false);
    if (bytes == nullptr) return;
    std::memcpy(tiles[lane / 8][lane % 8], bytes, 16);
  }
  for (uint32_t m = 0; m < count; ++m) {
    const auto& tile = tiles[m];
    LaneWords out;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t g = lane / 4, t = 2 * (lane % 4);
      const uint32_t low = transposed ? tile[t][g] : tile[g][t];
      const uint32_t high = transposed ? tile[t + 1][g] : tile[g][t + 1];
      out.v[lane] = high << 16 | low;
    }
    warp.Write(op.d + m, out);
  }
}
void Stsm(Warp& warp, const Op& op) {
  const uint32_t count = 1u << Bits(op, 72, 2);
  const bool transposed = Bits(op, 78, 2) == 1;
  const uint32_t* const source = warp.Row(op.b.row);
  for (uint32_t m = 0; m < count; ++m) {
    uint16_t tile[8][8];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t g = lane / 4, t = 2 * (lane % 4);
      const uint32_t word = op.b.row == kZeroRow ? 0 : source[m * kLanes + lane];
      (transposed ? tile[t][g] : tile[g][t]) = static_cast<uint16_t>(word);
      (transposed ? tile[t + 1][g] : tile[g][t + 1]) = static_cast<uint16_t>(word >> 16);
    }
    for (uint32_t r = 0; r < 8; ++r) {
      const uint32_t lane = 8 * m + r;
      std::byte* const bytes =
          Access(warp, Space::kShared, lane, RowAddress(warp, op, 64, lane), 16, true);
      if (bytes == nullptr) return;
      std::memcpy(bytes, tile[r], 16);
    }
  }
}

}  // namespace

bool BindMatrix(Op& op) {
  switch (op.word.opcode()) {
    case 0x23c: {
      op.latency = Latency::kMatrix;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      op.c = {.row = SourceRow(Bits(op, 64, 8))};
      // Bit 75: k is 16, not 8. Bit 76: fp32 result. Bits 82, 83: bf16, tf32.
      const bool deep = Bit(op, 75), wide = Bit(op, 76), bfloat = Bit(op, 82);
      const uint32_t others = Bits(op, 72, 3) | Bits(op, 77, 5) | Bits(op, 83, 8);
      if (others != 0 || (bfloat && !wide)) return true;
      if (bfloat) {
        op.run = deep ? Hmma<16, true, true> : Hmma<8, true, true>;
      } else if (wide) {
        op.run = deep ? Hmma<16, true, false> : Hmma<8, true, false>;
      } else {
        op.run = deep ? Hmma<16, false, false> : Hmma<8, false, false>;
      }
      return true;
    }
    case 0x83b:
      op.latency = Latency::kShared;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      if (Bits(op, 72, 2) != 3 && Bits(op, 78, 2) <= 1 && Bits(op, 74, 4) == 0) op.run = Ldsm;
      return true;
    case 0x844:
      op.latency = Latency::kShared;
      op.a = SourceRow(Bits(op, 24, 8));
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      if (Bits(op, 72, 2) != 3 && Bits(op, 78, 2) <= 1 && Bits(op, 74, 4) == 0) op.run = Stsm;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
