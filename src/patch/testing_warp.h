// testing_warp.h: one warp that walks code, as far as tests of this room need.
//
// It executes the few instructions that entry code, slots and exit stubs are made of, and ignores
// all others; branches under a guard go as the test says. It sees what a patched warp would store
// where, and complains when a uniform register is read before its result can have arrived. Written
// from docs/design/recording.md and nvdisasm's output, not from the code under test.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sass/instruction.h"

namespace iket::patch::testing {

struct RingStore {
  uint32_t address = 0;  // low word: UR0 + offset
  uint32_t data = 0;     // first register
  uint32_t bytes = 0;
  std::array<uint32_t, 4> words{};  // as far as `bytes` goes
};

class Warp {
 public:
  // What the warp was given, and what S2R and the table answer.
  static constexpr uint32_t kSlot = 0x1300, kSm = 77;
  static constexpr uint32_t kOldCursor = 0x7fe0, kOldEnd = 0x1234567;
  static constexpr uint32_t kClock = 0xc10c, kTimer = 0x713e;
  static constexpr uint32_t kCta[3] = {1'000'000, 65'000, 64'000};
  static constexpr uint32_t kTid[3] = {1001, 1000, 31};
  static constexpr uint32_t kPackedTid = kTid[2] << 26 | kTid[1] << 16 | kTid[0], kGrid = 4321;

  explicit Warp(sass::Generation generation = sass::Generation::kHopper)
      : generation_(generation) {}

  // Walks from instruction 0 to an EXIT that is taken, or to what it cannot follow (a call, a
  // return, an indirect branch), or for 200 decisions. `takes(n)` answers whether the n-th guarded
  // branch or exit is taken.
  void Walk(std::span<const sass::Instruction> code, const std::function<bool(uint32_t)>& takes) {
    constexpr uint32_t kBra = 0x147, kCallAbs = 0x143, kCallRel = 0x144, kBrx = 0x149, kRet = 0x150;
    uint32_t decisions = 0;
    uint32_t steps = 0;
    for (size_t at = 0; at < code.size() && decisions < 200 && ++steps < 1'000'000;) {
      const sass::Instruction& i = code[at];
      const bool taken = i.is_unguarded() || (sass::EndsBasicBlock(i) && takes(decisions++));
      const uint64_t pc = at * sass::kInstructionBytes;
      if (i.opcode() == sass::kOpExit && taken) {
        exited = true;
        return;
      }
      const uint32_t base = i.base_opcode();
      if (base == kBra && taken) {
        at =
            static_cast<size_t>(sass::RelativeTarget(i, pc, generation_)) / sass::kInstructionBytes;
        cycle_ += std::max<uint32_t>(i.control().stall, 5);
        continue;
      }
      if (taken && (base == kCallAbs || base == kCallRel || base == kBrx || base == kRet)) return;
      Execute(i, pc);
      cycle_ += i.control().stall;
      ++at;
    }
  }

  std::vector<RingStore> ring_stores;
  std::map<int32_t, RingStore> header_stores;  // by offset from the window's base
  std::vector<std::string> hazards;
  std::array<uint32_t, 256> r{};
  std::array<uint32_t, 256> ur{};
  uint32_t slots = 0;  // of the first kind, PMTRIG 0xe1xx
  bool exited = false;

 private:
  // Reads a reserved uniform register that must have arrived `latency` cycles after it was written.
  uint32_t Uniform(uint32_t n, uint32_t latency, uint64_t pc) {
    if (n < 4 && cycle_ < written_[n] + latency) {
      hazards.push_back(fmt::format("UR{} at {:#x} after {} cycles", n, pc, cycle_ - written_[n]));
    }
    return ur[n];
  }
  void SetUniform(uint32_t n, uint32_t value, uint32_t arrives_late) {
    ur[n] = value;
    if (n < 4) written_[n] = cycle_ + arrives_late;
  }

  static uint32_t Special(uint32_t number) {
    switch (number) {
      case 0x03:
        return kSlot | 0x70000055;  // the other bits are not the slot
      case 0x20:
        return kPackedTid;
      case 0x21:
      case 0x22:
      case 0x23:
        return kTid[number - 0x21];
      case 0x25:
      case 0x26:
      case 0x27:
        return kCta[number - 0x25];
      case 0x43:
        return kSm;
      default:
        return 0;
    }
  }

  void Execute(const sass::Instruction& i, uint64_t pc) {
    // The least distances in code of ptxas 13.0.
    constexpr uint32_t kToUniform = 4, kToAddress = 9, kToGeneral = 6, kR2urExtra = 9;
    const uint32_t d = i.Bits(16, 8), a = i.Bits(24, 8), immediate = i.Bits(32, 32);
    const uint32_t bits = sass::UniformBits(generation_), zero = sass::UniformZero(generation_);
    const uint32_t ud = i.Bits(16, bits), ua = i.Bits(24, bits);
    const bool is_new = generation_ == sass::Generation::kBlackwell;
    const uint32_t ra = a == sass::kRegisterZero ? 0 : r[a];
    switch (i.opcode()) {
      case sass::kOpPmTrig:
        slots += (immediate >> 8 & 0xff) == 0xe1;
        return;
      case sass::kOpS2r:
        r[d] = Special(i.Bits(72, 8));
        return;
      case sass::kOpCs2r:
        r[d] = i.Bits(72, 8) == 0x50 ? kClock : kTimer;
        return;
      case sass::kOpLdc:
      case 0xa02:  // MOV Rd, c[bank][offset]
        if (i.Bits(38, 16) == (is_new ? 0x140 : 0x30) && i.Bits(54, 5) == 0) r[d] = kGrid;
        return;
      case 0x802:  // MOV Rd, imm
        r[d] = immediate;
        return;
      case 0xc02:  // MOV Rd, URb
        r[d] = Uniform(immediate & zero, kToGeneral, pc);
        return;
      case 0x812:  // LOP3: & or |, or a predicate of it
        if (d == sass::kRegisterZero) return;
        r[d] = i.Bits(72, 8) == 0xc0 ? ra & immediate : ra | immediate;
        return;
      case 0x424:  // IMAD Rd, Ra, Rb, imm
        r[d] = ra * (i.Bits(64, 8) == sass::kRegisterZero ? 0 : r[i.Bits(64, 8)]) + immediate;
        return;
      case 0x824:  // IMAD Rd, Ra, imm, Rc
        r[d] = ra * immediate + (i.Bits(64, 8) == sass::kRegisterZero ? 0 : r[i.Bits(64, 8)]);
        return;
      case 0x2ca:  // R2UR: 13 cycles until a uniform instruction may read it
        SetUniform(ud, ra, kR2urExtra);
        return;
      case 0x3c2:  // R2UR before sm_90: its readers wait for its scoreboard
        SetUniform(ud, ra, 0);
        return;
      case 0x890:  // UIADD3
        if (ud < 4) SetUniform(ud, Uniform(ua, kToUniform, pc) + immediate, 0);
        return;
      case 0x892:  // ULOP3.LUT (a & imm) | c
        if (ud < 4) {
          const uint32_t masked = Uniform(ua, kToUniform, pc) & immediate;
          SetUniform(ud, masked | Uniform(i.Bits(64, bits), kToUniform, pc), 0);
        }
        return;
      case 0x899:  // USHF.L, USHF.R
        if (ud < 4 && ua < 4) SetUniform(ud, Uniform(ua, kToUniform, pc) << immediate, 0);
        if (ud < 4 && ua == zero) {
          SetUniform(ud, Uniform(i.Bits(64, bits), kToUniform, pc) >> immediate, 0);
        }
        return;
      case 0xab9:  // ULDC.64 of the window's base, whose low word is 0
      case 0x7ac:  // LDCU.64, from sm_100 on
        if (ud == 0) SetUniform(0, 0, 0);
        return;
      case 0x981:  // LDG of the previous warp's end
        if (i.Bits(32, 8) == 0) {
          r[d] = kOldCursor;
          r[d + 1] = kOldEnd;
        }
        return;
      case 0x986: {  // STG [Ra + UR]
        if (i.Bits(64, 6) != 0) return;
        const int32_t offset = static_cast<int32_t>(i.Bits(40, 24) << 8) >> 8;
        const uint32_t width = i.Bits(73, 3);
        RingStore store{.address = Uniform(0, kToAddress, pc) + static_cast<uint32_t>(offset) + ra,
                        .data = i.Bits(32, 8),
                        .bytes = width == 6   ? 16u
                                 : width == 5 ? 8u
                                              : 4u};
        for (uint32_t n = 0; n < store.bytes / 4; ++n) store.words[n] = r[(store.data + n) & 255];
        if (offset < -1024) {
          header_stores[static_cast<int32_t>(store.address)] = store;
        } else {
          ring_stores.push_back(store);
        }
        return;
      }
      default:
        return;
    }
  }

  sass::Generation generation_;
  uint32_t cycle_ = 100;
  std::array<uint32_t, 4> written_{};
};

}  // namespace iket::patch::testing
