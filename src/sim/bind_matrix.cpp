// Tensor cores (HMMA) and the loads and stores that feed them.
//
// A product of matrices is summed in fp32 in the order of k; a GPU sums in another order and with
// other intermediate widths, so results agree to 2^-10 of the sum of |a b|, not bit for bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/memory_access.h"

namespace iket::sim {
namespace {

bool IsWhole(Warp& warp) {
  if (warp.exec == kAllLanes) return true;
  warp.Raise(Fault::Kind::kUnsupported, warp.FirstLane(), 0, "a matrix product of part of a warp");
  return false;
}

// Floats and words that the compiler keeps in vector registers.
using Float4 = float __attribute__((vector_size(16)));
using Float8 = float __attribute__((vector_size(32)));
using Word8 = uint32_t __attribute__((vector_size(32)));

template <typename To, typename From>
inline void Copy(To& to, const From* from) {
  std::memcpy(&to, from, sizeof to);
}

// A product of two fp16 or bf16 numbers is exact: fused or not, the sum is the same.
inline void AddProduct(const float& a, const Float8& b, Float8& sum) {
#if defined(__FMA__)
  sum = _mm256_fmadd_ps(_mm256_broadcast_ss(&a), b, sum);
#else
  sum += a * b;
#endif
}

// The eight numbers in four neighbouring words.
template <bool kBfloat>
inline void Expand(const uint32_t* words, Float8& out) {
#if defined(__F16C__)
  if constexpr (!kBfloat) {
    __m128i halves;
    Copy(halves, words);
    out = _mm256_cvtph_ps(halves);
    return;
  }
#endif
  for (uint32_t i = 0; i < 8; ++i) {
    const auto half = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
    out[i] = kBfloat ? FloatFromBfloat(half) : FloatFromHalf(half);
  }
}

inline void Transpose(Float8 (&m)[8]) {
  Float8 n[8];
  for (uint32_t i = 0; i < 8; i += 2) {
    n[i] = __builtin_shufflevector(m[i], m[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    n[i + 1] = __builtin_shufflevector(m[i], m[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (uint32_t i = 0; i < 8; i += 4) {
    for (uint32_t j = i; j < i + 2; ++j) {
      m[j] = __builtin_shufflevector(n[j], n[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      m[j + 2] = __builtin_shufflevector(n[j], n[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) {
    n[i] = __builtin_shufflevector(m[i], m[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    n[i + 4] = __builtin_shufflevector(m[i], m[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  std::memcpy(m, n, sizeof m);
}

// D[16][8] = A[16][k] B[k][8] + C, k = 8 or 16. Lane 4 g + t holds of A rows g and g + 8, columns
// 2 t and 2 t + 1 (and 8 more); of B column g; of C and D rows g and g + 8, columns 2 t, 2 t + 1.
// So eight neighbours in a row of A, or in a column of B, stand in four neighbouring lanes.
template <uint32_t kK, bool kFloatResult, bool kBfloat>
void Hmma(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const auto row_of = [&warp](uint32_t first, uint32_t reg) {
    return warp.Row(first == kZeroRow ? kZeroRow : first + reg);
  };
  Float8 d[16];
  for (uint32_t high = 0; high < 2; ++high) {
    if constexpr (kFloatResult) {
      const uint32_t* const even = row_of(op.c.row, 2 * high);
      const uint32_t* const odd = row_of(op.c.row, 2 * high + 1);
      for (uint32_t g = 0; g < 8; ++g) {
        Float4 e, o;
        Copy(e, even + 4 * g);
        Copy(o, odd + 4 * g);
        d[g + 8 * high] = __builtin_shufflevector(e, o, 0, 4, 1, 5, 2, 6, 3, 7);
      }
    } else {
      const uint32_t* const c = row_of(op.c.row, high);
      for (uint32_t g = 0; g < 8; ++g) Expand<kBfloat>(c + 4 * g, d[g + 8 * high]);
    }
  }
  for (uint32_t half = 0; half < kK / 8; ++half) {
    Float8 b[8];  // rows of B, of which registers hold columns
    const uint32_t* const columns = row_of(op.b.row, half);
    for (uint32_t j = 0; j < 8; ++j) Expand<kBfloat>(columns + 4 * j, b[j]);
    Transpose(b);
    for (uint32_t i = 0; i < 16; i += 4) {
      alignas(32) float a[4][8];
      const uint32_t* const rows = row_of(op.a, i / 8 + 2 * half) + 4 * (i % 8);
      for (uint32_t r = 0; r < 4; ++r) {
        Float8 row;
        Expand<kBfloat>(rows + 4 * r, row);
        std::memcpy(a[r], &row, sizeof row);
      }
      // Four sums that depend on nothing but themselves, in registers.
      Float8 s0 = d[i], s1 = d[i + 1], s2 = d[i + 2], s3 = d[i + 3];
      for (uint32_t k = 0; k < 8; ++k) {
        AddProduct(a[0][k], b[k], s0);
        AddProduct(a[1][k], b[k], s1);
        AddProduct(a[2][k], b[k], s2);
        AddProduct(a[3][k], b[k], s3);
      }
      d[i] = s0;
      d[i + 1] = s1;
      d[i + 2] = s2;
      d[i + 3] = s3;
    }
  }
  for (uint32_t high = 0; high < 2; ++high) {
    if constexpr (kFloatResult) {
      uint32_t* const even = warp.Row(op.d + 2 * high);
      uint32_t* const odd = warp.Row(op.d + 2 * high + 1);
      for (uint32_t g = 0; g < 8; ++g) {
        Word8 bits;
        Copy(bits, &d[g + 8 * high]);
        bits = (bits & 0x7fffffff) > 0x7f800000 ? Word8{} + kCanonicalNan : bits;
        const auto e = __builtin_shufflevector(bits, bits, 0, 2, 4, 6);
        const auto o = __builtin_shufflevector(bits, bits, 1, 3, 5, 7);
        std::memcpy(even + 4 * g, &e, sizeof e);
        std::memcpy(odd + 4 * g, &o, sizeof o);
      }
    } else {
      uint32_t* const to = warp.Row(op.d + high);
      for (uint32_t g = 0; g < 8; ++g) {
        for (uint32_t t = 0; t < 4; ++t) {
          const Float8& from = d[g + 8 * high];
          to[4 * g + t] =
              uint32_t{HalfFromFloat(from[2 * t + 1])} << 16 | HalfFromFloat(from[2 * t]);
        }
      }
    }
  }
}

uint32_t MatrixWord(Warp& warp, uint32_t row, uint32_t reg, uint32_t lane) {
  return row == kZeroRow ? 0 : warp.Row(row + reg)[lane];
}

// HMMA.1684.TF32 and .1688: A[16][k] one word a number: lane 4 g + t holds rows g and g + 8,
// columns t and, where k is 8, t + 4.
template <uint32_t kK>
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
      for (uint32_t k = 0; k < kK; ++k) {
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
// The 16 bytes of shared memory that row `lane % 8` of matrix `lane / 8` is; null after a fault.
std::byte* MatrixRow(Warp& warp, const Op& op, uint32_t uniform_at, uint32_t lane, bool write) {
  const uint64_t address = RowAddress(warp, op, uniform_at, lane);
  std::byte* const bytes = address % 16 == 0 ? warp.cta->Shared(address, 16) : nullptr;
  return bytes != nullptr ? bytes : Access(warp, Space::kShared, lane, address, 16, write);
}
// A matrix as registers hold it, lane 4 g + t columns 2 t and 2 t + 1 of row g, with rows and
// columns exchanged.
LaneWords Exchanged(const LaneWords& matrix) {
  uint16_t from[8][8], to[8][8];
  std::memcpy(from, &matrix, sizeof from);
  for (uint32_t i = 0; i < 8; ++i) {
    for (uint32_t j = 0; j < 8; ++j) to[i][j] = from[j][i];
  }
  LaneWords out;
  std::memcpy(&out, to, sizeof to);
  return out;
}
// LDSM: matrices of 8 rows of 16 bytes; lane 8 m + r says where row r of matrix m is. Four
// neighbouring lanes get a row.
void Ldsm(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const uint32_t count = 1u << Bits(op, 72, 2);
  const bool transposed = Bits(op, 78, 2) == 1;
  // All is read before anything is written: the addresses may stand in a register of the result.
  LaneWords out[4];
  for (uint32_t lane = 0; lane < 8 * count; ++lane) {
    const std::byte* const bytes = MatrixRow(warp, op, 32, lane, false);
    if (bytes == nullptr) return;
    std::memcpy(&out[lane / 8].v[4 * (lane % 8)], bytes, 16);
  }
  for (uint32_t m = 0; m < count; ++m) {
    warp.Write(op.d + m, transposed ? Exchanged(out[m]) : out[m]);
  }
}
void Stsm(Warp& warp, const Op& op) {
  if (!IsWhole(warp)) return;
  const uint32_t count = 1u << Bits(op, 72, 2);
  const bool transposed = Bits(op, 78, 2) == 1;
  for (uint32_t m = 0; m < count; ++m) {
    LaneWords words;
    std::memcpy(&words, warp.Row(op.b.row == kZeroRow ? kZeroRow : op.b.row + m), sizeof words);
    if (transposed) words = Exchanged(words);
    for (uint32_t r = 0; r < 8; ++r) {
      std::byte* const bytes = MatrixRow(warp, op, 64, 8 * m + r, true);
      if (bytes == nullptr) return;
      std::memcpy(bytes, &words.v[4 * r], 16);
    }
  }
}

// D = A B + C, all of them registers.
void BindOperands(Op& op) {
  op.latency = Latency::kMatrix;
  op.d = TargetRow(Bits(op, 16, 8));
  op.a = SourceRow(Bits(op, 24, 8));
  op.b = {.row = SourceRow(Bits(op, 32, 8))};
  op.c = {.row = SourceRow(Bits(op, 64, 8))};
}

}  // namespace

bool IKET_SIM_ISA::BindMatrix(Op& op) {
  switch (op.word.opcode()) {
    case 0x23c: {
      BindOperands(op);
      // Bit 75: k is 16, not 8. Bit 76: fp32 result. Bits 82, 83: bf16, tf32.
      const bool deep = Bit(op, 75), wide = Bit(op, 76), bfloat = Bit(op, 82);
      const uint32_t others = Bits(op, 72, 3) | Bits(op, 77, 5) | Bits(op, 83, 8);
      // Bit 78: k is 4, of tf32 alone.
      if (Bits(op, 72, 15) == (1 << 4 | 1 << 11)) {
        op.run = HmmaTf32<8>;
        return true;
      }
      if (Bits(op, 72, 15) == (1 << 4 | 1 << 6 | 1 << 11)) {
        op.run = HmmaTf32<4>;
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
      BindOperands(op);
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
      BindOperands(op);
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
