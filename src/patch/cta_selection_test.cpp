// Selection code is executed here, instruction by instruction, and must say what ring::Passes says.
#include "patch/cta_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "ring/layout.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using Size = std::array<uint32_t, 3>;

struct Place {
  Size cta, grid, cluster;
  uint32_t sm;
  uint32_t cga_size;  // SR_CgaSize, from sm_100 on
};

using sass::Generation;

// What stands at an address of c[0], as ptxas reads it for each generation.
uint32_t ConstantOf(Generation generation, uint32_t at, const Place& place) {
  constexpr uint32_t kStride = 0xa0;
  const bool is_new = generation == Generation::kBlackwell;
  const uint32_t grid = is_new ? 0x370 : 0xc;
  const uint32_t cluster = is_new ? 0x2a0 - kStride * place.cga_size : 0x144;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (at == grid + 4 * axis) return place.grid.at(axis);
    if (at == cluster + 4 * axis && generation != Generation::kAmpere) {
      return place.cluster.at(axis);
    }
  }
  ADD_FAILURE() << "c[0][" << std::hex << at << "]";
  return 0;
}

// The few forms that selection code consists of, from nvdisasm's output; ends the test at others.
uint32_t ResultOf(const std::vector<Instruction>& code, Generation generation, const Place& place) {
  std::array<uint32_t, 256> r{};
  std::array<bool, 8> p{};
  p[7] = true;
  uint32_t result = ~0u;
  for (const Instruction& i : code) {
    if (!p[i.guard()]) continue;
    const uint32_t d = i.Bits(16, 8), a = r[i.Bits(24, 8)], value = i.Bits(32, 32);
    const uint32_t b = r[i.Bits(32, 8)], c = r[i.Bits(64, 8)];
    switch (i.opcode()) {
      case 0x919: {  // S2R
        const uint32_t number = i.Bits(72, 8);
        r[d] = number == 0x43 ? place.sm : place.cta.at(number - 0x25);
        break;
      }
      case 0xa02:  // MOV Rd, c[0][offset]
        r[d] = ConstantOf(generation, i.Bits(38, 16), place);
        break;
      case 0xb82:  // LDC Rd, c[0][Ra + offset]
        r[d] = ConstantOf(generation, a + i.Bits(38, 16), place);
        break;
      case 0x802:
        r[d] = value;
        break;
      case 0x805:  // CS2R.32 Rd, SR_CgaSize
        EXPECT_EQ(i.Bits(72, 8), 0x8au);
        r[d] = place.cga_size;
        break;
      case sass::kOpNop:
        break;
      case 0x824:
        r[d] = a * value + c;
        break;
      case 0x224:
        r[d] = a * b + c;
        break;
      case 0x810:
        r[d] = a + value + c;
        break;
      case 0x836:
        r[d] = a + value;
        break;
      case 0x819:
        r[d] = std::rotr(a, static_cast<int>(value));
        break;
      case 0x807:
        r[d] = p[i.Bits(87, 3)] ? value : 0;
        break;
      case 0x80c:
      case 0x20c: {
        const uint32_t other = i.opcode() == 0x80c ? value : b;
        const uint32_t compare = i.Bits(76, 3);
        const bool holds = compare == 4 ? a > other : compare == 5 ? a != other : a >= other;
        EXPECT_TRUE(compare >= 4 && compare <= 6);
        const bool with = p[i.Bits(87, 3)];
        p[i.Bits(81, 3)] = i.Bits(74, 2) == 0 ? holds && with : holds || with;
        break;
      }
      case 0x2ca:
      case 0x3c2:
        EXPECT_EQ(i.Bits(16, 6), kSelectionResult);
        result = a;
        break;
      default:
        ADD_FAILURE() << std::hex << i.opcode();
    }
    r[255] = 0;
  }
  return result;
}

// What a GPU does not forgive: a result that is read before it is there. `code` is straight.
void ExpectNoHazard(const std::vector<Instruction>& code) {
  constexpr uint8_t kNone = 7;
  int cycle = 0;
  std::array<int, 6> set_at{};   // cycle from which a scoreboard is seen to be set
  std::array<int, 256> ready{};  // of registers written with fixed latency
  std::array<int, 8> p_ready{};
  std::array<uint8_t, 256> pending{};  // 1 + the scoreboard of who writes it
  for (const Instruction& i : code) {
    const auto control = i.control();
    for (uint8_t b = 0; b < 6; ++b) {
      if ((control.wait >> b & 1) == 0) continue;
      EXPECT_GE(cycle, set_at[b]) << "waits for a scoreboard that is not set yet";
      std::ranges::replace(pending, uint8_t(b + 1), uint8_t{0});
    }
    EXPECT_GE(cycle, p_ready[i.guard()]);
    const uint32_t opcode = i.opcode();
    const bool loads = opcode == 0x919 || opcode == 0xb82 || opcode == 0x3c2;
    const bool reads_nothing = opcode == 0x919 || opcode == 0xa02 || opcode == 0x802 ||
                               opcode == 0x805 || opcode == 0x807 || opcode == sass::kOpNop;
    const bool compares = opcode == 0x80c || opcode == 0x20c;
    std::vector<uint32_t> sources;
    if (!reads_nothing) sources.push_back(i.Bits(24, 8));
    if (opcode == 0x224 || opcode == 0x20c) sources.push_back(i.Bits(32, 8));
    if (opcode == 0x224 || opcode == 0x824 || opcode == 0x810 || opcode == 0x819)
      sources.push_back(i.Bits(64, 8));
    for (const uint32_t source : sources) {
      if (source == 255) continue;
      EXPECT_EQ(pending[source], 0) << "R" << source << " is read while it is loaded";
      EXPECT_GE(cycle, ready[source]) << "R" << source;
    }
    if (compares || opcode == 0x807) {
      EXPECT_GE(cycle, p_ready[i.Bits(87, 3)]);
    }
    if (loads) {
      ASSERT_NE(control.write_barrier, kNone);
      // A uniform register is nobody's here, but has its scoreboard.
      if (opcode != 0x3c2) {
        pending[i.Bits(16, 8)] = static_cast<uint8_t>(control.write_barrier + 1);
      }
      set_at[control.write_barrier] = cycle + 2;
    } else if (compares) {
      p_ready[i.Bits(81, 3)] = cycle + 13;
    } else if (opcode != 0x2ca && opcode != sass::kOpNop) {
      ready[i.Bits(16, 8)] = cycle + 5;
    }
    cycle += control.stall;
  }
}

class CtaSelection : public ::testing::TestWithParam<Generation> {};
std::string NameOf(const ::testing::TestParamInfo<Generation>& of) {
  return std::array{"ampere", "hopper", "blackwell"}.at(static_cast<size_t>(of.param));
}
INSTANTIATE_TEST_SUITE_P(Generations, CtaSelection,
                         ::testing::Values(Generation::kAmpere, Generation::kHopper,
                                           Generation::kBlackwell),
                         NameOf);

TEST_P(CtaSelection, NoFilterNoCode) { EXPECT_TRUE(SelectionCode({}, GetParam()).empty()); }

TEST_P(CtaSelection, SaysWhatTheFilterSays) {
  std::mt19937 random(11);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  int passing = 0;
  for (int round = 0; round < 5000; ++round) {
    ring::CtaFilter filter{.nobody = below(20) == 0, .sample = 1 + (below(2) == 0 ? below(40) : 0)};
    if (below(2) == 0) filter.cluster = {{below(4), below(3), below(2)}};
    for (uint32_t ranges = below(4); ranges > 0; --ranges) {
      const uint32_t first = below(132);
      filter.sms.push_back({first, first + below(20)});
    }
    const auto code = SelectionCode(filter, GetParam());
    if (code.empty()) continue;
    ExpectNoHazard(code);
    for (int i = 0; i < 20; ++i) {
      const bool has_clusters = GetParam() != Generation::kAmpere;
      const Size cluster = has_clusters ? Size{1 + below(4), 1 + below(2), 1} : Size{1, 1, 1};
      const Size grid{cluster[0] * (1 + below(9)), cluster[1] * (1 + below(5)), 1 + below(3)};
      const Place place{.cta = {below(grid[0]), below(grid[1]), below(grid[2])},
                        .grid = grid,
                        .cluster = cluster,
                        .sm = below(132),
                        .cga_size = below(4)};
      const bool on_sm =
          filter.sms.empty() || std::ranges::any_of(filter.sms, [&](const ring::SmRange& range) {
            return range.first <= place.sm && place.sm <= range.last;
          });
      const bool passes = on_sm && ring::Passes(filter, place.cta, grid, cluster);
      passing += passes ? 1 : 0;
      ASSERT_EQ(ResultOf(code, GetParam(), place), passes ? 0u : ring::kSinkBit >> 32);
    }
  }
  EXPECT_GT(passing, 1000);
}

TEST(CtaSelectionDivisor, MultiplesWithoutADivision) {
  std::mt19937 random(3);
  const auto is_multiple = [](uint32_t n, const Divisor& divisor) {
    return std::rotr(n * divisor.inverse, static_cast<int>(divisor.shift)) <= divisor.most;
  };
  for (const uint32_t number : {1u, 2u, 3u, 6u, 7u, 8u, 12u, 1000u, 0x80000000u, ~0u}) {
    const Divisor divisor = DivisorOf(number);
    for (int i = 0; i < 2000; ++i) {
      const uint32_t n = static_cast<uint32_t>(random());
      ASSERT_EQ(is_multiple(n, divisor), n % number == 0) << n << " by " << number;
      ASSERT_TRUE(is_multiple(n / number * number, divisor)) << n << " by " << number;
    }
  }
}

}  // namespace
}  // namespace iket::patch
