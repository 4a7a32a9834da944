// Entry code and exit stubs: what they store, and that no result is read before it has arrived.
#include "patch/trampoline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "patch/testing_warp.h"
#include "ring/record.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

constexpr sass::Generation kHopper = sass::Generation::kHopper;

using sass::Instruction;
using testing::Warp;
using Code = std::vector<Instruction>;

constexpr uint32_t kRing = Warp::kSm * 64 + Warp::kSlot / 256;
constexpr int32_t kHeader = static_cast<int32_t>(kRing * 256) - (8 << 20);
constexpr uint32_t kKernel = 0x1234567;

ring::Layout TestLayout(uint32_t ring_bytes) { return ring::MakeLayout(ring_bytes, 132).value(); }

constexpr sass::Generation kAmpere = sass::Generation::kAmpere;
constexpr sass::Generation kBlackwell = sass::Generation::kBlackwell;

struct Case {
  uint32_t ring_bytes;
  bool reads_cta_yz;
  sass::Generation generation = kHopper;
};
class Trampoline : public ::testing::TestWithParam<Case> {
 protected:
  const ring::Layout layout_ = TestLayout(GetParam().ring_bytes);
  const sass::Generation generation_ = GetParam().generation;
  const Code entry_ = EntryCode({.layout = layout_,
                                 .generation = generation_,
                                 .kernel = kKernel,
                                 .constant_offset = 24,
                                 .reads_cta_yz = GetParam().reads_cta_yz});

  // What a warp does that ends at once.
  Warp Run() const {
    Code code = entry_;
    const Code stub = ExitCode(layout_, generation_, 4);
    code.insert(code.end(), stub.begin(), stub.end());
    Warp warp(generation_);
    warp.Walk(code, [](uint32_t) { return false; });
    return warp;
  }
  uint32_t RecordAddress(uint32_t position) const {
    return kRing * layout_.ring_bytes + position % layout_.ring_bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, Trampoline,
                         ::testing::Values(Case{4 << 10, true}, Case{4 << 10, false},
                                           Case{32 << 10, true}, Case{32 << 10, false},
                                           Case{256 << 10, true}, Case{32 << 10, true, kAmpere},
                                           Case{4 << 10, false, kAmpere},
                                           Case{32 << 10, true, kBlackwell},
                                           Case{256 << 10, false, kBlackwell}),
                         [](const auto& of) {
                           const char* const generation = of.param.generation == kAmpere ? "ampere_"
                                                          : of.param.generation == kBlackwell
                                                              ? "blackwell_"
                                                              : "";
                           return generation + std::to_string(of.param.ring_bytes) +
                                  (of.param.reads_cta_yz ? "_xyz" : "_x");
                         });

TEST_P(Trampoline, BeginsWithTwoRecords) {
  const Warp warp = Run();
  ASSERT_EQ(warp.ring_stores.size(), 2u);
  const auto record = [&warp](size_t i) {
    const auto& w = warp.ring_stores[i].words;
    return ring::Record{w[0], w[1], w[2], w[3]};
  };
  EXPECT_EQ(warp.ring_stores[0].address, RecordAddress(Warp::kOldCursor));
  EXPECT_EQ(warp.ring_stores[0].bytes, 16u);
  EXPECT_EQ(ring::KindOf(record(0)), ring::RecordKind::kBegin);
  EXPECT_EQ(ring::KernelOf(record(0).tag), kKernel);
  EXPECT_EQ(record(0).clock, Warp::kClock);
  EXPECT_EQ(record(0).low, Warp::kTimer);
  EXPECT_EQ(record(0).high, Warp::kOldEnd);

  EXPECT_EQ(warp.ring_stores[1].address, RecordAddress(Warp::kOldCursor + 16));
  EXPECT_EQ(warp.ring_stores[1].bytes, 16u);
  EXPECT_EQ(ring::KindOf(record(1)), ring::RecordKind::kIdentity);
  const bool yz = GetParam().reads_cta_yz;
  const ring::Identity expected{.cta_x = Warp::kCta[0],
                                .cta_y = static_cast<uint16_t>(yz ? Warp::kCta[1] : 0),
                                .cta_z = static_cast<uint16_t>(yz ? Warp::kCta[2] : 0),
                                .grid = Warp::kGrid,
                                .tid_x = 1001,
                                .tid_y = 1000,
                                .tid_z = 31};
  EXPECT_EQ(ring::IdentityOf(record(1)), expected);
  // The same record stands in the header.
  ASSERT_TRUE(warp.header_stores.contains(kHeader + 16));
  EXPECT_EQ(warp.header_stores.at(kHeader + 16).words, warp.ring_stores[1].words);
}

TEST_P(Trampoline, EndsInTheHeader) {
  const Warp warp = Run();
  ASSERT_TRUE(warp.header_stores.contains(kHeader));
  const testing::RingStore& end = warp.header_stores.at(kHeader);
  EXPECT_EQ(end.bytes, 16u);
  EXPECT_EQ(end.words[0], Warp::kOldCursor + 32);
  EXPECT_EQ(end.words[1], Warp::kClock);
  EXPECT_EQ(end.words[2], Warp::kTimer);
}

// After the entry code, and after an exit stub (other lanes may go on), a mark finds what it makes
// its address from.
TEST_P(Trampoline, LeavesCursorAndRing) {
  Warp begun(generation_);
  begun.Walk(entry_, [](uint32_t) { return false; });
  EXPECT_EQ(begun.ur[2], Warp::kOldCursor + 32);
  EXPECT_EQ(begun.ur[3], kRing * layout_.ring_bytes);
  const Warp remained = Run();
  for (const uint32_t n : {1, 2, 3}) EXPECT_EQ(remained.ur[n], begun.ur[n]) << "UR" << n;
}

// All lanes hold the same words: one stores them.
TEST_P(Trampoline, BeginsInItsFirstLaneOnly) {
  for (const Instruction& i : entry_) {
    if (i.opcode() == 0x986) {
      EXPECT_EQ(i.Bits(12, 4), 0x8u) << "not @!P0";
    } else {
      EXPECT_TRUE(i.is_unguarded());
    }
  }
}

TEST_P(Trampoline, ReadsNoUniformRegisterTooEarly) {
  const Warp warp = Run();
  EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
}

// Registers that an instruction of the trampolines reads and writes: the general ones, and, counted
// from kUniform on, the uniform ones.
constexpr uint32_t kUniform = 1000;
struct Operands {
  std::vector<uint32_t> reads, writes;
};
Operands OperandsOf(const Instruction& i, sass::Generation generation) {
  Operands operands;
  const uint32_t bits = sass::UniformBits(generation);
  const auto uniform = [&](std::vector<uint32_t>& list, uint32_t at, uint32_t count) {
    const uint32_t first = i.Bits(at, bits);
    for (uint32_t n = 0; n < count && first != sass::UniformZero(generation); ++n) {
      list.push_back(kUniform + first + n);
    }
  };
  const auto add = [](std::vector<uint32_t>& list, uint32_t first, uint32_t count) {
    for (uint32_t n = 0; n < count && first != sass::kRegisterZero; ++n) list.push_back(first + n);
  };
  const uint32_t d = i.Bits(16, 8), a = i.Bits(24, 8), c = i.Bits(64, 8);
  const uint32_t width = i.Bits(73, 3);
  const uint32_t registers = width == 6 ? 4 : width == 5 ? 2 : 1;
  switch (i.opcode()) {
    case 0x919:  // S2R
    case 0xb82:  // LDC
    case 0x802:  // MOV Rd, imm
    case 0xa02:  // MOV Rd, c[bank][offset]
      add(operands.writes, d, 1);
      break;
    case 0xc02:  // MOV Rd, URb
      add(operands.writes, d, 1);
      uniform(operands.reads, 32, 1);
      break;
    case 0x805:  // CS2R
      add(operands.writes, d, i.Bits(80, 1) + 1);
      break;
    case 0x812:  // LOP3
      add(operands.writes, d, 1);
      add(operands.reads, a, 1);
      break;
    case 0x824:  // IMAD
      add(operands.writes, d, 1);
      add(operands.reads, a, 1);
      add(operands.reads, c, 1);
      break;
    case 0x2ca:  // R2UR
    case 0x3c2:
      add(operands.reads, a, 1);
      uniform(operands.writes, 16, 1);
      break;
    case 0x981:  // LDG
      add(operands.writes, d, registers);
      add(operands.reads, a, 1);
      uniform(operands.reads, 32, 2);
      break;
    case 0x986:  // STG
      add(operands.reads, a, 1);
      add(operands.reads, i.Bits(32, 8), registers);
      uniform(operands.reads, 64, 2);
      break;
    case 0x890:  // UIADD3
    case 0x892:  // ULOP3
    case 0x899:  // USHF
      uniform(operands.writes, 16, 1);
      uniform(operands.reads, 24, 1);
      uniform(operands.reads, 64, 1);
      break;
    case 0xab9:  // ULDC.64
    case 0x7ac:  // LDCU.64
      uniform(operands.writes, 16, 2);
      break;
    default:
      ADD_FAILURE() << "an opcode that this test does not know: " << std::hex << i.opcode();
  }
  return operands;
}
bool HasVariableLatency(const Instruction& i) {
  constexpr uint32_t kS2r = 0x919, kLdc = 0xb82, kLdg = 0x981, kLdcu = 0x7ac, kOldR2ur = 0x3c2;
  const uint32_t opcode = i.opcode();
  return opcode == kS2r || opcode == kLdc || opcode == kLdg || opcode == kLdcu ||
         opcode == kOldR2ur;
}

TEST_P(Trampoline, WaitsForResultsOfVariableLatency) {
  std::map<uint32_t, uint8_t> arriving;  // register -> scoreboard
  std::map<uint32_t, uint8_t> leaving;   // read by a store that may not have done so yet
  for (size_t at = 0; at < entry_.size(); ++at) {
    const Instruction& i = entry_[at];
    const sass::Control control = i.control();
    const auto waited = [&](const auto& entry) { return (control.wait >> entry.second & 1) != 0; };
    std::erase_if(arriving, waited);
    std::erase_if(leaving, waited);
    const Operands operands = OperandsOf(i, generation_);
    for (uint32_t n : operands.reads) EXPECT_FALSE(arriving.contains(n)) << "R" << n << ", " << at;
    for (uint32_t n : operands.writes) {
      EXPECT_FALSE(arriving.contains(n)) << "R" << n << ", " << at;
      EXPECT_FALSE(leaving.contains(n)) << "R" << n << ", " << at;
      if (HasVariableLatency(i)) arriving[n] = control.write_barrier;
    }
    if (HasVariableLatency(i)) {
      EXPECT_LT(control.write_barrier, 6) << at;
    }
    if (i.opcode() == 0x986) {
      EXPECT_LT(control.read_barrier, 6) << at;
      for (uint32_t n : operands.reads) {  // uniform ones are read when it is issued
        if (n < kUniform) leaving[n] = control.read_barrier;
      }
    }
  }
  EXPECT_TRUE(arriving.empty()) << "the kernel does not wait";
  EXPECT_TRUE(leaving.empty()) << "the kernel does not wait";
}

// Results of fixed latency that are read: ptxas leaves 4 cycles and more between them, 5 after
// IMAD.
TEST_P(Trampoline, GivesArithmeticItsTime) {
  const auto check = [this](const Code& code) {
    std::map<uint32_t, uint32_t> written;  // register -> cycle
    uint32_t cycle = 0;
    for (const Instruction& i : code) {
      const Operands operands = OperandsOf(i, generation_);
      for (uint32_t n : operands.reads) {
        if (n < kUniform && written.contains(n)) {
          EXPECT_GE(cycle - written[n], 5u) << "R" << n;
        }
      }
      for (uint32_t n : operands.writes) {
        written.erase(n);
        if (!HasVariableLatency(i)) written[n] = cycle;
      }
      cycle += i.control().stall;
    }
  };
  check(entry_);
  check(ExitCode(layout_, generation_, 8));
}

TEST_P(Trampoline, KeepsToItsRegisters) {
  for (const Instruction& i : entry_) {
    const Operands operands = OperandsOf(i, generation_);
    for (uint32_t n : operands.reads) EXPECT_LT(n % kUniform, n < kUniform ? 16u : 4u);
    for (uint32_t n : operands.writes) EXPECT_LT(n % kUniform, n < kUniform ? 16u : 4u);
  }
  for (const Instruction& i : ExitCode(layout_, generation_, 8)) {
    const Operands operands = OperandsOf(i, generation_);
    for (uint32_t n : operands.reads) EXPECT_TRUE(n >= kUniform || n / 4 == 2u) << n;
    for (uint32_t n : operands.writes) EXPECT_TRUE(n == kUniform || n / 4 == 2u) << n;
  }
}

// The exit stub runs in the middle of a kernel whose loads and stores may be under way.
TEST_P(Trampoline, ExitsWaitForEveryScoreboard) {
  EXPECT_EQ(ExitCode(layout_, generation_, 4).front().control().wait, 0x3f);
}

// What trampoline.h says they cost.
TEST_P(Trampoline, HasItsLength) {
  const uint32_t more = generation_ == kHopper ? 0 : 5;
  EXPECT_EQ(entry_.size(), (GetParam().reads_cta_yz ? 27u : 25u) + more);
  EXPECT_EQ(ExitCode(layout_, generation_, 4).size(), 5u);
}

}  // namespace
}  // namespace iket::patch
