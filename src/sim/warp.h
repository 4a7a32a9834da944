// warp.h: one warp: registers, predicates, and which of its lanes are where.
//
// Lanes that run together are a split: a mask and a program counter. A divergent branch makes two
// of one; BSYNC, WARPSYNC and the barriers of the CTA hold splits until those they wait for have
// come, and put together again what stands at the same place. One split of a warp runs at a time.
//
// Convergence barriers are kept a lane: B3 of a lane is the mask of lanes that said BSSY B3
// together with it. So splits that use the same barrier in different code do not meet.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault.h"
#include "sim/op.h"

namespace iket::sim {

struct Cta;
struct Launch;
class Sm;

struct alignas(64) LaneWords {
  std::array<uint32_t, kLanes> v;
};

enum class SplitState : uint8_t {
  kReady,
  kConvergence,  // BSYNC number `barrier`
  kWarpSync,     // until the live lanes of `mates` have come
  kCtaBarrier,   // number `barrier`
};

struct Split {
  uint32_t mask = 0;
  uint32_t pc = 0;
  SplitState state = SplitState::kReady;
  uint8_t barrier = 0;
  uint32_t mates = 0;
};

class Warp {
 public:
  static constexpr uint32_t kUniforms = 64;

  // ---- what handlers use -----------------------------------------------------------------------
  uint32_t* Row(uint32_t row) { return registers_.get() + size_t{row} * kLanes; }
  const uint32_t* Row(uint32_t row) const { return registers_.get() + size_t{row} * kLanes; }
  // Lane `lane` of general register `reg`, of native functions.
  uint32_t& Register(uint32_t reg, uint32_t lane) { return Row(kFirstRow + reg)[lane]; }

  // The 32 words of an operand; `scratch` holds them where it is the same for all lanes.
  const uint32_t* Words(const Operand& operand, LaneWords& scratch) {
    if (operand.kind == Operand::Kind::kRegister) return Row(operand.row);
    scratch.v.fill(Scalar(operand));
    return scratch.v.data();
  }
  // The high half of a 64-bit operand.
  const uint32_t* HighWords(const Operand& operand, LaneWords& scratch) {
    if (operand.kind == Operand::Kind::kRegister) {
      return Row(operand.row == kZeroRow ? kZeroRow : operand.row + 1u);
    }
    scratch.v.fill(ScalarHigh(operand));
    return scratch.v.data();
  }
  uint32_t Scalar(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kImmediate:
        return operand.value;
      case Operand::Kind::kUniform:
        return uniform[operand.row];
      case Operand::Kind::kConstant:
        return Constant(operand.bank, operand.value);
      case Operand::Kind::kRegister:
        break;
    }
    return 0;
  }
  uint32_t ScalarHigh(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kUniform:
        return operand.row >= 62 ? uniform[63] : uniform[operand.row + 1u];
      case Operand::Kind::kConstant:
        return Constant(operand.bank, operand.value + 4);
      default:
        return Scalar(operand);
    }
  }
  // A word of constant memory; past its end it is 0.
  uint32_t Constant(uint32_t bank, uint32_t offset);

  // Writes lanes under `exec`.
  void Write(uint32_t row, const LaneWords& words) {
    uint32_t* const to = Row(row);
    if (exec == kAllLanes) {
      for (uint32_t i = 0; i < kLanes; ++i) to[i] = words.v[i];
    } else {
      // Vector code: nobody else reads the lanes that keep their word meanwhile.
      for (uint32_t i = 0; i < kLanes; ++i) {
        const uint32_t keep = (exec >> i & 1) - 1;
        to[i] = (to[i] & keep) | (words.v[i] & ~keep);
      }
    }
  }
  void WritePredicate(uint32_t p, uint32_t lanes) {
    if (p != 7) predicate[p] = (predicate[p] & ~exec) | (lanes & exec);
  }
  uint32_t ReadPredicate(uint32_t p, bool negated) const {
    return negated ? ~predicate[p] : predicate[p];
  }
  void WriteUniform(uint32_t ur, uint32_t value) {
    if (ur < sass::kUniformRegisterZero) uniform[ur] = value;  // a pair at URZ ends past it
  }
  void WriteUniformPredicate(uint32_t p, bool value) {
    if (p != 7) uniform_predicate[p] = value;
  }
  uint32_t FirstLane() const { return static_cast<uint32_t>(std::countr_zero(exec)); }

  // A fault of the lane at the instruction that runs; the first one counts. Ends the launch.
  void Raise(Fault::Kind kind, uint32_t lane, uint64_t address, std::string what);
  void RaiseInvalidPc(uint64_t address);  // a jump to where there is no code

  // ---- state -----------------------------------------------------------------------------------
  uint32_t exec = 0;                    // lanes that execute the present instruction
  std::array<uint32_t, 8> predicate{};  // a mask of lanes each; [7] is PT
  std::array<uint32_t, kUniforms> uniform{};
  std::array<bool, 8> uniform_predicate{};

  // The split that runs: its lanes and its next instruction.
  uint32_t active = 0;
  uint32_t pc = 0;
  uint32_t at = 0;     // the present instruction
  bool leave = false;  // stop running this split after the present instruction
  bool faulted = false;

  uint32_t live = 0;  // lanes that have not exited
  std::array<std::array<uint32_t, kLanes>, 16> convergence{};
  std::vector<Split> waiting;  // all splits but the one that runs

  uint64_t time = 0;  // cycles of its SM
  std::array<uint64_t, 6> scoreboard{};
  uint64_t issued = 0;         // instructions
  uint32_t barrier_count = 0;  // results of the last reducing barrier
  bool barrier_all = false, barrier_any = false;
  uint32_t barrier_reduction = 0;  // POPC, AND, OR
  Cta* cta = nullptr;
  Sm* sm = nullptr;
  Launch* launch = nullptr;
  uint32_t number = 0;  // in its CTA
  uint32_t slot = 0;    // of its SM
  const Op* code = nullptr;
  uint32_t code_size = 0;
  const std::byte* constants[8] = {};
  uint32_t constant_bytes[8] = {};

  // ---- control flow (warp.cpp)
  // -------------------------------------------------------------------
  // `registers`: room for `rows` rows, of any content.
  void Start(std::unique_ptr<uint32_t[]> registers, uint32_t rows, uint32_t lanes, uint32_t entry);
  // The register file, for a warp that comes after this one.
  std::unique_ptr<uint32_t[]> TakeRegisters() { return std::move(registers_); }
  // Lanes of `mask`, a subset of the active ones, go to `target`; the others go on.
  void Branch(uint32_t mask, uint32_t target);
  // The lanes wait; where nothing is left to run another split is taken.
  void Wait(uint32_t mask, SplitState state, uint8_t barrier, uint32_t mates);
  void Exit(uint32_t mask);
  // Lets go what waits for convergence and has all its mates.
  void Reconverge();
  // Takes a ready split if none runs. False: nothing of this warp can run.
  bool Pick();
  // Puts the running split behind the other ready ones.
  void Rotate();
  bool done() const { return live == 0; }

  std::byte* Local(uint32_t lane, uint64_t address, uint32_t size);

 private:
  std::unique_ptr<uint32_t[]> registers_;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> local_;
};

}  // namespace iket::sim
