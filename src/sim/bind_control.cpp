// Branches, calls, returns, reconvergence, exits.
#include <bit>

#include "sim/bind.h"
#include "sim/cta.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

void Nop(Warp&, const Op&) {}

// USETMAXREG.TRY_ALLOC: every thread has room for all registers here, so they are always to be had.
void TryAllocRegisters(Warp& warp, const Op& op) {
  warp.WriteUniformPredicate(Bits(op, 81, 3), true);
}

// A code address, of a call or a return.
bool IndexOf(Warp& warp, uint64_t address, uint32_t& index) {
  const uint64_t base = warp.launch->code_base;
  const uint64_t at = (address - base) / sass::kInstructionBytes;
  if (address < base || at >= warp.code_size || address % sass::kInstructionBytes != 0) {
    warp.RaiseInvalidPc(address);
    return false;
  }
  index = static_cast<uint32_t>(at);
  return true;
}
// Each lane goes where its address says.
template <typename F>
void Scatter(Warp& warp, F address_of) {
  uint32_t left = warp.exec;
  const uint32_t all = warp.exec;
  uint32_t gone = 0;
  while (left != 0) {
    const auto first = static_cast<uint32_t>(std::countr_zero(left));
    const uint64_t address = address_of(first);
    uint32_t together = 0;
    for (uint32_t mask = left; mask != 0; mask &= mask - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
      if (address_of(lane) == address) together |= 1u << lane;
    }
    uint32_t index = 0;
    if (!IndexOf(warp, address, index)) return;
    left &= ~together;
    if ((all & ~gone & ~together) == 0 && (warp.active & ~together) == 0) {
      warp.pc = index;
    } else {
      warp.Branch(together, index);
      gone |= together;
    }
  }
}

void Bra(Warp& warp, const Op& op) {
  // A second predicate: both must hold.
  const uint32_t taken = warp.exec & PredicateAt(warp, op, 87);
  if (taken != 0) warp.Branch(taken, op.target);
}
// BRA.U.ANY: all lanes of the split go if one wants to.
void BraAny(Warp& warp, const Op& op) { warp.Branch(warp.active, op.target); }
// BRA.DIV UR: taken if not all lanes that the register names run together.
void BraDiv(Warp& warp, const Op& op) {
  const uint32_t mask = warp.uniform[Bits(op, 24, 6)];
  if ((mask & warp.live & ~warp.active) != 0) warp.Branch(warp.exec, op.target);
}
void Brx(Warp& warp, const Op& op) {
  // Relative to the next instruction, plus a register pair.
  const uint64_t next = warp.launch->code_base + (uint64_t{warp.at} + 1) * sass::kInstructionBytes;
  const Wide a = WideRow(warp, op.a);
  Scatter(warp,
          [&](uint32_t lane) { return next + static_cast<uint64_t>(op.immediate) + a[lane]; });
}
void CallRelative(Warp& warp, const Op& op) { warp.Branch(warp.exec, op.target); }
void CallAbsolute(Warp& warp, const Op& op) {
  uint32_t index = 0;
  if (IndexOf(warp, static_cast<uint64_t>(op.immediate), index)) warp.Branch(warp.exec, index);
}
void CallRegister(Warp& warp, const Op& op) {
  const Wide a = WideRow(warp, op.a);
  Scatter(warp, [&](uint32_t lane) { return a[lane] + static_cast<uint64_t>(op.immediate); });
}
void CallRelativeRegister(Warp& warp, const Op& op) {
  const uint64_t next = warp.launch->code_base + (uint64_t{warp.at} + 1) * sass::kInstructionBytes;
  const Wide a = WideRow(warp, op.a);
  Scatter(warp,
          [&](uint32_t lane) { return next + static_cast<uint64_t>(op.immediate) + a[lane]; });
}
// LEPC: an address near the instruction.
void Lepc(Warp& warp, const Op& op) {
  const uint64_t address = warp.launch->code_base + static_cast<uint64_t>(op.immediate);
  LaneWords low, high;
  low.v.fill(static_cast<uint32_t>(address));
  high.v.fill(static_cast<uint32_t>(address >> 32));
  WriteWide(warp, op.d, low, high);
}

// ---- reconvergence -----------------------------------------------------------------------------
void Bssy(Warp& warp, const Op& op) {
  auto& barrier = warp.convergence[Bits(op, 16, 4)];
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    barrier[static_cast<size_t>(std::countr_zero(mask))] = warp.exec;
  }
}
void Bsync(Warp& warp, const Op& op) {
  const uint32_t number = Bits(op, 16, 4);
  const auto& barrier = warp.convergence[number];
  // Groups of lanes that said BSSY together may be here at once.
  uint32_t left = warp.exec;
  bool wait = false;
  for (uint32_t rest = left; rest != 0;) {
    const auto lane = static_cast<size_t>(std::countr_zero(rest));
    const uint32_t group = barrier[lane];
    if ((group & warp.live & ~warp.exec) != 0 || (warp.exec & ~group) != 0) wait = true;
    rest &= ~(group | 1u << lane);
  }
  if (!wait) return;
  while (left != 0) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    const uint32_t group = (barrier[lane] | 1u << lane) & left;
    left &= ~group;
    warp.waiting.push_back({.mask = group,
                            .pc = warp.pc,
                            .state = SplitState::kConvergence,
                            .barrier = static_cast<uint8_t>(number)});
  }
  warp.active &= ~warp.exec;
  warp.Reconverge();
}
void Break(Warp& warp, const Op& op) {
  auto& barrier = warp.convergence[Bits(op, 16, 4)];
  const uint32_t leaving = warp.exec & PredicateAt(warp, op, 87);
  for (uint32_t& mask : barrier) mask &= ~leaving;
  warp.Reconverge();
}
void BmovToRegister(Warp& warp, const Op& op) {
  auto& barrier = warp.convergence[Bits(op, 24, 4)];
  LaneWords out;
  for (uint32_t i = 0; i < kLanes; ++i) {
    out.v[i] = barrier[i];
    if (Bit(op, 84) && (warp.exec >> i & 1) != 0) barrier[i] = 0;
  }
  warp.Write(op.d, out);
}
void BmovFromRegister(Warp& warp, const Op& op) {
  auto& barrier = warp.convergence[Bits(op, 24, 4)];
  LaneWords scratch;
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(mask));
    barrier[lane] = b[lane];
  }
}
void WarpSyncAll(Warp& warp, const Op&) {
  if ((warp.live & ~warp.exec) == 0) return;
  warp.Wait(warp.exec, SplitState::kWarpSync, 0, kAllLanes);
}
void WarpSync(Warp& warp, const Op& op) {
  LaneWords scratch;
  const uint32_t* const masks = warp.Words(op.b, scratch);
  const uint32_t mates = masks[warp.FirstLane()];
  // Lanes that name others come to this instruction again, by themselves.
  uint32_t others = 0;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    if (masks[lane] != mates) others |= 1u << lane;
  }
  if (others != 0) {
    warp.waiting.push_back({.mask = others, .pc = warp.at});
    warp.active &= ~others;
    warp.exec &= ~others;
  }
  if ((mates & warp.live & ~warp.exec) == 0) return;
  warp.Wait(warp.exec, SplitState::kWarpSync, 0, mates);
}
void Yield(Warp& warp, const Op&) {
  if (!warp.waiting.empty()) warp.Rotate();
}
void Nanosleep(Warp& warp, const Op&) {
  warp.time += 200;
  if (!warp.waiting.empty()) warp.Rotate();
}

void Exit(Warp& warp, const Op& op) {
  const uint32_t leaving = warp.exec & PredicateAt(warp, op, 87);
  if (leaving != 0) warp.Exit(leaving);
}
void Trap(Warp& warp, const Op&) {
  warp.Raise(Fault::Kind::kTrap, warp.FirstLane(), 0, "the kernel trapped");
}

// Where no code is, the warp faults when it gets there.
constexpr uint32_t kNowhere = 0xffffffff;
uint32_t IndexAt(int64_t address) {
  if (address < 0 || address % sass::kInstructionBytes != 0) return kNowhere;
  const int64_t index = address / sass::kInstructionBytes;
  return index < kNowhere ? static_cast<uint32_t>(index) : kNowhere;
}
uint32_t RelativeIndex(const Op& op, uint32_t index) {
  return IndexAt(sass::RelativeTarget(op.word, uint64_t{index} * sass::kInstructionBytes,
                                      sass::Generation::kHopper));
}
// The signed displacement, in bytes, of a jump that adds a register to it.
int64_t Displacement(const Op& op) {
  return sass::RelativeTarget(op.word, 0, sass::Generation::kHopper) -
         int64_t{sass::kInstructionBytes};
}

}  // namespace

bool IKET_SIM_ISA::BindControl(Op& op, uint32_t index) {
  const sass::Instruction& word = op.word;
  switch (word.opcode()) {
    case 0x918:  // NOP
    case 0x801:  // PMTRIG: counts for a profiler of the hardware
    case 0x91b:  // ENDCOLLECTIVE
    case 0x82d:  // PREEXIT
    case 0x82e:  // ACQBULK
      op.run = Nop;
      return true;
    case 0x947: {
      op.target = RelativeIndex(op, index);
      const uint32_t mode = Bits(op, 32, 2);
      // .U and .DIV are known without a predicate of their own.
      if (mode != 0 && Bits(op, 87, 4) != 7) return true;
      if (mode == 0 && !Bit(op, 84) && !word.is_uniform_form()) op.run = Bra;
      if (mode == 1 && Bit(op, 84) && !word.is_uniform_form()) op.run = BraAny;
      if (mode == 2 && !Bit(op, 84) && word.is_uniform_form()) op.run = BraDiv;
      return true;
    }
    case 0x949:
      op.a = SourceRow(Bits(op, 24, 8));
      op.immediate = Displacement(op);
      op.run = Brx;
      return true;
    case 0x944:
      op.target = RelativeIndex(op, index);
      op.run = CallRelative;
      return true;
    case 0x344:
      op.a = SourceRow(Bits(op, 24, 8));
      op.immediate = Displacement(op);
      op.run = CallRelativeRegister;
      return true;
    case 0x943:
      op.run = CallAbsolute;  // the loader resolves it
      return true;
    case 0x343:
      op.a = SourceRow(Bits(op, 24, 8));
      op.run = CallRegister;
      return true;
    case 0x950:
      op.a = SourceRow(Bits(op, 24, 8));
      // RET.ABS: the address in the registers. RET.REL: relative to the image's start.
      op.immediate = Displacement(op);
      op.run = Bit(op, 85) ? CallRegister : CallRelativeRegister;
      return true;
    case 0x94e:
      op.d = TargetRow(Bits(op, 16, 8));
      // The displacement, in bytes, stands at bits 24..81.
      op.immediate = (uint64_t{index} + 1) * sass::kInstructionBytes +
                     (static_cast<int64_t>((word.low >> 24 | word.high << 40) << 6) >> 6);
      op.run = Lepc;
      return true;
    case 0x945:
      op.run = Bssy;
      return true;
    case 0x941:
      op.run = Bsync;
      return true;
    case 0x942:
      op.run = Break;
      return true;
    case 0x355:
      op.d = TargetRow(Bits(op, 16, 8));
      op.latency = Latency::kShort;
      op.run = BmovToRegister;
      return true;
    case 0x356:
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      op.run = BmovFromRegister;
      return true;
    case 0x948:
      op.run = WarpSyncAll;
      return true;
    case 0x348:
      op.b = {.row = SourceRow(Bits(op, 24, 8))};
      op.run = WarpSync;
      return true;
    case 0x946:
      op.run = Yield;
      return true;
    case 0x35d:
    case 0x95d:
      op.run = Nanosleep;
      return true;
    case 0x94d:
      op.run = Exit;
      return true;
    case 0x9c8: {
      op.guard_uniform = true;
      const uint32_t mode = Bits(op, 72, 3);                // of the CTA's pool
      if (mode == 5 && Bits(op, 81, 3) == 7) op.run = Nop;  // .DEALLOC
      if (mode == 6 && Bits(op, 81, 3) != 7) op.run = TryAllocRegisters;
      return true;
    }
    case 0x95c:
      op.run = Trap;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
