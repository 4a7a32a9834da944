// Tensor cores (HMMA) and the loads and stores that feed them.
//
// A product of matrices is summed in fp32 in the order of k; a GPU sums in another order and with
// other intermediate widths, so results agree to 2^-10 of the sum of |a b|, not bit for bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
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

bool IsWhole(Warp& warp) {
  if (warp.exec == kAllLanes) return true;
  warp.Raise(Fault::Kind::kUnsupported, warp.FirstLane(), 0, "a matrix product of part of a warp");
  return false;
}
uint32_t MatrixWord(Warp& warp, uint32_t row, uint32_t reg, uint32_t lane) {
  return row == kZeroRow ? 0 : warp.Row(row + reg)[lane];
}

// HMMA.1688.TF32: A[16][8] one word a number: lane 4 g + t holds rows g and g + 8, columns t, t
// + 4.
void HmmaTf32(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const auto number = [&](uint32_t row, uint32_t reg, uint32_t lane) {
    return AsFloat(MatrixWord(warp, row, reg, lane) & ~0x1fffu);
  };
  float d[16][8];
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      const uint32_t at = 4 * (i % 8) + j / 2;
      float sum = AsFloat(MatrixWord(warp, op.c.row, 2 * (i / 8) + j % 2, at));
      for (uint32_t k = 0; k < 8; ++k) {
        sum += number(op.a, i / 8 + 2 * (k / 4), 4 * (i % 8) + k % 4) *
               number(op.b.row, k / 4, 4 * j + k % 4);
      }
      d[i][j] = sum;
    }
  }
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      warp.Row(op.d + 2 * (i / 8) + j % 2)[4 * (i % 8) + j / 2] = Canonical(d[i][j]);
    }
  }
}

// IMMA: A[16][k] of bytes, k = 16 or 32. Bits 76, 78: A and B are signed; 82: the result saturates.
template <uint32_t kK>
void Imma(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const bool signed_a = Bit(op, 76), signed_b = Bit(op, 78), saturate = Bit(op, 82);
  const auto number = [&](uint32_t row, uint32_t reg, uint32_t lane, uint32_t byte,
                          bool is_signed) {
    const auto value = static_cast<uint8_t>(MatrixWord(warp, row, reg, lane) >> (8 * byte));
    return is_signed ? int64_t{static_cast<int8_t>(value)} : int64_t{value};
  };
  uint32_t d[16][8];
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      const uint32_t c = MatrixWord(warp, op.c.row, 2 * (i / 8) + j % 2, 4 * (i % 8) + j / 2);
      int64_t sum = static_cast<int32_t>(c);
      for (uint32_t k = 0; k < kK; ++k) {
        sum += number(op.a, i / 8 + 2 * (k / 16), 4 * (i % 8) + k / 4 % 4, k % 4, signed_a) *
               number(op.b.row, k / 16, 4 * j + k / 4 % 4, k % 4, signed_b);
      }
      if (saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      d[i][j] = static_cast<uint32_t>(sum);
    }
  }
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      warp.Row(op.d + 2 * (i / 8) + j % 2)[4 * (i % 8) + j / 2] = d[i][j];
    }
  }
}

// DMMA.8x8x4, fused and in the order of k.
void Dmma(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const auto number = [&](uint32_t row, uint32_t pair, uint32_t lane) {
    return AsDouble(uint64_t{MatrixWord(warp, row, 2 * pair + 1, lane)} << 32 |
                    MatrixWord(warp, row, 2 * pair, lane));
  };
  double d[8][8];
  for (uint32_t i = 0; i < 8; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      double sum = number(op.c.row, j % 2, 4 * i + j / 2);
      for (uint32_t k = 0; k < 4; ++k) {
        sum = std::fma(number(op.a, 0, 4 * i + k), number(op.b.row, 0, 4 * j + k), sum);
      }
      d[i][j] = sum;
    }
  }
  for (uint32_t i = 0; i < 8; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      const uint64_t bits = AsBits(d[i][j]);
      warp.Row(op.d + 2 * (j % 2))[4 * i + j / 2] = static_cast<uint32_t>(bits);
      warp.Row(op.d + 2 * (j % 2) + 1)[4 * i + j / 2] = static_cast<uint32_t>(bits >> 32);
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
  if (!IsWhole(warp)) return;
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
  if (!IsWhole(warp)) return;
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
      if (Bits(op, 72, 15) == (1 << 4 | 1 << 11)) {
        op.run = HmmaTf32;
        return true;
      }
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
    case 0x237: {
      op.latency = Latency::kMatrix;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      op.c = {.row = SourceRow(Bits(op, 64, 8))};
      // Bit 74: B by columns. Bits 75, 85, 86: the shape.
      const uint32_t shape = Bits(op, 85, 2) << 1 | Bits(op, 75, 1);
      const uint32_t others =
          Bits(op, 72, 2) | Bit(op, 77) | Bits(op, 79, 3) | Bits(op, 83, 2) | Bits(op, 87, 4);
      if (others == 0 && Bit(op, 74) && shape >= 4 && shape <= 5) {
        op.run = shape == 5 ? Imma<32> : Imma<16>;
      }
      return true;
    }
    case 0x23f:
      op.latency = Latency::kMatrix;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      op.c = {.row = SourceRow(Bits(op, 64, 8))};
      if (Bits(op, 72, 19) == 0) op.run = Dmma;
      return true;
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
