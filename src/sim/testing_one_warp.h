// testing_one_warp.h: one warp that stands still, for tests of one instruction at a time: its whole
// state is set, the instruction executed as a SM does it, and the state looked at afterwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sass/decode.h"
#include "sim/bind.h"
#include "sim/cta.h"
#include "sim/sm.h"
#include "sim/testing.h"

namespace iket::sim::testing {

// Random words (splitmix64), the same everywhere.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  uint32_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<uint32_t>((z ^ z >> 31) >> 32);
  }

 private:
  uint64_t state_;
};

class OneWarp {
 public:
  static constexpr uint32_t kRows = kFirstRow + 256 + 8;
  static constexpr uint32_t kIndex = 4096;  // where the instruction stands in its code
  static constexpr uint32_t kScratchBytes = 4096;
  static constexpr uint32_t kLocalBytes = 1024;

  // Where each bank of constants holds floats at the ends of their range.
  static constexpr uint32_t kSpecialConstants = 0x400;

  // All that an instruction can change.
  struct State {
    std::vector<uint32_t> registers = std::vector<uint32_t>(size_t{kRows} * kLanes);
    std::array<uint32_t, 8> predicate{};
    std::array<uint32_t, Warp::kUniforms> uniform{};
    std::array<bool, 8> uniform_predicate{};
    uint32_t active = kAllLanes, live = kAllLanes, pc = kIndex + 1;
    bool leave = false;
    std::array<std::array<uint32_t, kLanes>, 16> convergence{};
    std::vector<std::array<uint32_t, 5>> waiting;  // mask, pc, state, barrier, mates
    std::array<uint64_t, 6> scoreboard{};
    uint64_t time = 1000;
    std::array<uint32_t, 4> reduction{};  // count, all, any, kind
    // Of the CTA: busy, expected threads, lanes that arrived, count, all, any.
    std::vector<std::array<uint32_t, 6>> barriers =
        std::vector(16, std::array<uint32_t, 6>{0, 0, 0, 0, 1, 0});
    std::vector<std::byte> shared = std::vector<std::byte>(kScratchBytes);
    std::vector<std::byte> global = std::vector<std::byte>(kScratchBytes);
    std::vector<std::byte> local = std::vector<std::byte>(kLocalBytes * kLanes);
    std::string fault;

    uint32_t& Register(uint32_t number, uint32_t lane) {
      return registers[(size_t{kFirstRow} + number) * kLanes + lane];
    }
    friend bool operator==(const State&, const State&) = default;
  };

  OneWarp() : sm_(model_, device_.space, 3) {
    image_ = &device_.Load("saxpy.cubin");
    kernel_ = image_->kernels().data();
    global_ = device_.Upload(std::vector<std::byte>(kScratchBytes));
    Draw random(7);
    constants_.resize(size_t{kConstantWords} * 8);
    for (uint32_t& word : constants_) word = random() | 0x80808080;
    for (uint32_t bank = 0; bank < 8; ++bank) {
      constexpr uint32_t kValues[] = {0x3f812345, 0x00812345, 0x7f812345, 0x00012345,
                                      0xbc01b481, 0x7ff87ff8, 0xc0f12345};
      std::copy(std::begin(kValues), std::end(kValues),
                &constants_[bank * kConstantWords + kSpecialConstants / 4]);
    }
  }

  uint64_t global_address() const { return global_; }
  uint64_t code_base() const { return image_->code_base(); }
  uint32_t constant(uint32_t bank, uint32_t offset) const {
    return constants_[bank * kConstantWords + offset / 4];
  }

  static bool IsBound(const sass::Instruction& word) {
    static const Handler kUnsupported = BindInstruction({0xfff, 0}, 0).run;
    return BindInstruction(word, kIndex).run != kUnsupported;
  }

  // A bit pattern of the kinds at which instructions tell things apart.
  static uint32_t Special(Draw& random) {
    constexpr uint32_t kSpecial[] = {
        0,          1,          0xffffffff, 0x80000000, 0x7fffffff, 0x7f800000, 0xff800000,
        0x7fc00000, 0xffc12345, 0x7f812345, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
        0x3f800000, 0xbf800000, 0x3f000000, 0x40200000, 0xc0200000, 0x4f000000, 0x5f000000,
        0x7c007c00, 0xfc007e00, 0x3c003c00, 0x00010001, 0x80018001, 0x7bff7bff, 0x3555b555,
        0x0000ffff, 0xffff0000, 0x000000ff, 0x00000020, 0x0000001f, 0x00000040, 0x7ff00000,
        0x7ff80000, 0xfff00000, 0x00100000, 0x3ff00000, 0xbff00000, 0x47f00000, 0x36900000};
    return kSpecial[random() % std::size(kSpecial)];
  }
  static uint32_t Value(Draw& random) {
    const uint32_t bits = random();
    switch (random() % 8) {
      case 0:
        return Special(random);
      case 1:
        return bits % 70;
      case 2:  // floats of middling size
        return (bits & 0x807fffff) | (120 + bits % 16) << 23;
      case 3:  // halves
        return (bits & 0x83ff83ff) | (12 + bits % 7) << 10 | (12 + bits / 8 % 7) << 26;
      case 4:  // high words of doubles
        return (bits & 0x800fffff) | (1016 + bits % 16) << 20;
      case 5:
        return 0u - bits % 70;
      default:
        return bits;
    }
  }
  // Kinds of states. In some, values meet others of their kind, or the same ones, in all lanes.
  enum class Kind { kMixed, kSmall, kTwoValues, kOneValue, kFloats, kSpecial };
  static State Random(uint32_t seed, Kind kind, bool whole) {
    Draw random(seed);
    State state;
    const auto value = [&]() -> uint32_t {
      switch (kind) {
        case Kind::kSmall:
          return random() % 40;
        case Kind::kFloats:
          return (random() & 0x807fffff) | (124 + random() % 6) << 23;
        case Kind::kSpecial:
          return Special(random);
        default:
          return Value(random);
      }
    };
    for (size_t row = kFirstRow; row < kRows; ++row) {
      const uint32_t one = value(), other = kind == Kind::kTwoValues ? value() : one;
      const bool drawn = kind != Kind::kTwoValues && kind != Kind::kOneValue;
      for (uint32_t i = 0; i < kLanes; ++i) {
        state.registers[row * kLanes + i] = drawn ? value() : random() % 2 != 0 ? one : other;
      }
    }
    const bool same = kind == Kind::kOneValue || kind == Kind::kTwoValues;
    for (uint32_t p = 0; p < 7; ++p) {
      const uint32_t lanes = random();
      state.predicate[p] = same ? 0 - (lanes & 1) : lanes;
    }
    state.predicate[7] = kAllLanes;
    for (uint32_t i = 0; i < 63; ++i) state.uniform[i] = value();
    for (uint32_t p = 0; p < 7; ++p) state.uniform_predicate[p] = random() % 2 != 0;
    state.uniform_predicate[7] = true;
    state.active = whole ? kAllLanes : random() | 0x8001;
    for (auto& barrier : state.convergence) {
      for (uint32_t i = 0; i < kLanes; ++i) barrier[i] = random() | 1u << i;
    }
    if (state.active != kAllLanes) {
      state.waiting.push_back({~state.active, kIndex + 7, 0, 0, 0});
    }
    const auto fill = [&](std::vector<std::byte>& bytes) {
      for (size_t i = 0; i < bytes.size(); i += 4) {
        const uint32_t word = value();
        std::memcpy(&bytes[i], &word, 4);
      }
    };
    fill(state.shared);
    fill(state.global);
    fill(state.local);
    return state;
  }

  // Executes the word in this state, as a SM does, and leaves the state that comes of it.
  void Execute(const sass::Instruction& word, State& state) {
    Launch launch;
    launch.kernel = kernel_;
    launch.image = image_;
    launch.code_base = image_->code_base();
    launch.model = &model_;
    launch.space = &device_.space;
    launch.block = {.x = 16, .y = 4, .z = 2};
    launch.threads = 128;
    launch.warps = 1;
    launch.local_bytes = kLocalBytes;
    Cta cta;
    cta.launch = &launch;
    cta.sm = &sm_;
    cta.id[0] = 5;
    cta.id[1] = 6;
    cta.id[2] = 7;
    cta.shared = state.shared;
    cta.live_warps = 1;
    for (size_t i = 0; i < cta.barriers.size(); ++i) {
      cta.barriers[i].arrived[0] = state.barriers[i][2];
    }
    cta.warps.push_back(std::make_unique<Warp>());
    Warp& warp = *cta.warps.back();
    warp.cta = &cta;
    warp.sm = &sm_;
    warp.launch = &launch;
    warp.slot = 9;
    warp.code_size = 1 << 20;
    for (uint32_t bank = 0; bank < 8; ++bank) {
      warp.constants[bank] = reinterpret_cast<const std::byte*>(&constants_[bank * kConstantWords]);
      warp.constant_bytes[bank] = kConstantWords * 4;
    }
    warp.Start(std::make_unique<uint32_t[]>(size_t{kRows} * kLanes), kRows, kAllLanes, kIndex);
    Put(state, warp);
    const Op op = BindInstruction(word, kIndex);
    warp.at = kIndex;
    warp.pc = kIndex + 1;
    uint32_t exec = warp.active;
    if (op.guard_uniform) {
      if (warp.uniform_predicate[op.guard] == op.guard_negated) exec = 0;
    } else {
      exec &= op.guard_negated ? ~warp.predicate[op.guard] : warp.predicate[op.guard];
    }
    warp.exec = exec;
    if (exec != 0) op.run(warp, op);
    Take(warp, cta, state);
    if (launch.fault) {
      state.fault = std::string(FaultKindName(launch.fault->kind)) + " " +
                    std::to_string(launch.fault->lane) + " " +
                    std::to_string(launch.fault->address);
    }
  }

 private:
  static constexpr uint32_t kConstantWords = 1 << 14;

  void Put(const State& state, Warp& warp) {
    std::memcpy(warp.Row(0), state.registers.data(), state.registers.size() * 4);
    warp.predicate = state.predicate;
    warp.uniform = state.uniform;
    warp.uniform_predicate = state.uniform_predicate;
    warp.active = state.active;
    warp.live = state.live;
    warp.convergence = state.convergence;
    for (const auto& split : state.waiting) {
      warp.waiting.push_back({.mask = split[0],
                              .pc = split[1],
                              .state = static_cast<SplitState>(split[2]),
                              .barrier = static_cast<uint8_t>(split[3]),
                              .mates = split[4]});
    }
    warp.time = state.time;
    warp.barrier_count = state.reduction[0];
    warp.barrier_all = state.reduction[1] != 0;
    warp.barrier_any = state.reduction[2] != 0;
    warp.barrier_reduction = state.reduction[3];
    std::memcpy(device_.space.Find(global_, kScratchBytes), state.global.data(), kScratchBytes);
    for (uint32_t i = 0; i < kLanes; ++i) {
      std::memcpy(warp.Local(i, 0, kLocalBytes), &state.local[size_t{i} * kLocalBytes],
                  kLocalBytes);
    }
  }
  void Take(Warp& warp, const Cta& cta, State& state) {
    std::memcpy(state.registers.data(), warp.Row(0), state.registers.size() * 4);
    // Nobody reads what is written to RZ.
    std::fill_n(&state.registers[size_t{kSinkRow} * kLanes], 4 * kLanes, 0u);
    state.predicate = warp.predicate;
    state.uniform = warp.uniform;
    state.uniform_predicate = warp.uniform_predicate;
    state.active = warp.active;
    state.live = warp.live;
    state.pc = warp.pc;
    state.leave = warp.leave;
    state.convergence = warp.convergence;
    state.waiting.clear();
    for (const Split& split : warp.waiting) {
      state.waiting.push_back(
          {split.mask, split.pc, static_cast<uint32_t>(split.state), split.barrier, split.mates});
    }
    state.time = warp.time;
    state.reduction = {warp.barrier_count, uint32_t{warp.barrier_all}, uint32_t{warp.barrier_any},
                       warp.barrier_reduction};
    for (size_t i = 0; i < cta.barriers.size(); ++i) {
      const CtaBarrier& b = cta.barriers[i];
      state.barriers[i] = {uint32_t{b.busy}, b.expected,           b.arrived[0],
                           b.true_count,     uint32_t{b.all_true}, uint32_t{b.any_true}};
    }
    state.shared = cta.shared;
    std::memcpy(state.global.data(), device_.space.Find(global_, kScratchBytes), kScratchBytes);
    for (uint32_t i = 0; i < kLanes; ++i) {
      std::memcpy(&state.local[size_t{i} * kLocalBytes], warp.Local(i, 0, kLocalBytes),
                  kLocalBytes);
    }
  }

  Device device_;
  DeviceModel model_;
  const Image* image_ = nullptr;
  const Kernel* kernel_ = nullptr;
  Sm sm_;
  uint64_t global_ = 0;
  std::vector<uint32_t> constants_;
};

}  // namespace iket::sim::testing
