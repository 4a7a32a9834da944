// SPDX-License-Identifier: Apache-2.0
//
// What the examples rely on to say "ok": their inputs, their checks, the order of tiles.
#include "common/gemm.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "common/tile_order.h"

namespace example {
namespace {

TEST(Half, EveryInputIsExact) {
  for (int numerator = -31; numerator <= 31; numerator += 2) {
    EXPECT_EQ(HalfToDouble(HalfFromNumerator(numerator)), numerator / 32.0) << numerator;
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(HalfToDouble(0x3c00), 1.0);
  EXPECT_EQ(HalfToDouble(0xc000), -2.0);
  EXPECT_EQ(HalfToDouble(0x7bff), 65504.0);
  EXPECT_EQ(HalfToDouble(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(HalfToDouble(0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(HalfToDouble(0xffff)));
}

TEST(Inputs, CoverTheirRangeAndRepeat) {
  const std::vector<int8_t> numerators = MakeNumerators(10000, 1);
  EXPECT_EQ(numerators, MakeNumerators(10000, 1));
  std::vector<int> seen(63);
  for (const int8_t numerator : numerators) {
    ASSERT_EQ(std::abs(numerator) % 2, 1);
    ASSERT_LE(std::abs(numerator), 31);
    ++seen[static_cast<size_t>(numerator + 31)];
  }
  for (size_t i = 0; i < seen.size(); i += 2) EXPECT_GT(seen[i], 200) << i;
}

// The fp16 nearest to `value`, by trying all of them.
uint16_t NearestHalf(double value) {
  static std::map<double, uint16_t> known;
  const auto [entry, is_new] = known.try_emplace(value, uint16_t{0});
  if (is_new) {
    uint16_t& best = entry->second;
    for (unsigned half = 0; half < 0x10000; ++half) {
      const double error = std::abs(HalfToDouble(static_cast<uint16_t>(half)) - value);
      if (error < std::abs(HalfToDouble(best) - value)) best = static_cast<uint16_t>(half);
    }
  }
  return entry->second;
}

TEST(Problem, AcceptsTheNearestHalfAndNoOther) {
  const GemmProblem problem({3, 5, 72});
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 5; ++column) {
      const uint16_t right = NearestHalf(problem.Exact(row, column));
      EXPECT_TRUE(problem.IsRight(right, row, column));
      // Their neighbours, unless the exact sum lies midway between two.
      for (const int step : {-1, 1}) {
        const uint16_t wrong = static_cast<uint16_t>(right + step);
        const double off = std::abs(HalfToDouble(wrong) - problem.Exact(row, column));
        const double best = std::abs(HalfToDouble(right) - problem.Exact(row, column));
        if (off > best) {
          EXPECT_FALSE(problem.IsRight(wrong, row, column)) << row << " " << column;
        }
      }
    }
  }
}

TEST(Problem, ExactIsTheSumOfTheHalvesItHandsOut) {
  const GemmProblem problem({2, 3, 40});
  const std::vector<uint16_t> a = problem.a(), b = problem.b();
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      double sum = 0;
      for (size_t i = 0; i < 40; ++i) {
        sum += HalfToDouble(a[row * 40 + i]) * HalfToDouble(b[column * 40 + i]);
      }
      EXPECT_EQ(problem.Exact(static_cast<int>(row), static_cast<int>(column)), sum);
    }
  }
}

TEST(Problem, SamplesFindUnwrittenAndChangedElements) {
  const GemmProblem problem({64, 64, 8});
  EXPECT_EQ(problem.WrongSamples(problem.unwritten_c()), 64 * 64);
  std::vector<uint16_t> c(64 * 64);
  for (int i = 0; i < 64 * 64; ++i)
    c[static_cast<size_t>(i)] = NearestHalf(problem.Exact(i / 64, i % 64));
  EXPECT_EQ(problem.WrongSamples(c), 0);
  c.back() = static_cast<uint16_t>(c.back() ^ 2);
  EXPECT_EQ(problem.WrongSamples(c), 1);
}

TEST(TileOrder, VisitsEveryTileOnce) {
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{
           {1, 1}, {8, 8}, {7, 3}, {9, 1}, {1, 9}, {17, 5}, {32, 16}}) {
    const TileOrder order(rows, columns);
    ASSERT_EQ(order.count(), rows * columns);
    std::vector<int> visits(static_cast<size_t>(order.count()));
    for (int i = 0; i < order.count(); ++i) {
      const Tile tile = order.At(i);
      ASSERT_TRUE(tile.row >= 0 && tile.row < rows && tile.column >= 0 && tile.column < columns);
      ++visits[static_cast<size_t>(tile.row * columns + tile.column)];
    }
    for (const int count : visits) EXPECT_EQ(count, 1) << rows << "x" << columns;
  }
}

TEST(TileOrder, TilesInFlightFormABlock) {
  const TileOrder order(32, 32);
  for (int i = 0; i < 64; ++i) {
    EXPECT_LT(order.At(i).row, 8);
    EXPECT_LT(order.At(i).column, 8);
  }
}

}  // namespace
}  // namespace example
