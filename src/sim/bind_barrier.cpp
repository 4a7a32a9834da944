// Barriers of the CTA and mbarriers in shared memory.
#include <cstring>

#include "sim/bind.h"
#include "sim/cta.h"
#include "sim/memory_access.h"

namespace iket::sim {
namespace {

// Bits 77..79: what the barrier does.
constexpr uint32_t kArrive = 1, kReduce = 2;  // 0 is SYNC

void Bar(Warp& warp, const Op& op) {
  const uint32_t mode = Bits(op, 77, 2);
  const uint32_t first = warp.FirstLane();
  uint32_t barrier, threads = 0;
  const uint32_t form = op.word.opcode();
  if (form == 0xb1d) {
    barrier = Bits(op, 54, 4);
    threads = Bits(op, 42, 12);
  } else {
    const uint32_t value = warp.Row(op.b.row)[first];
    barrier = value & 15;
    threads = value >> 16 & 0xfff;
  }
  const uint32_t votes = mode == kReduce ? PredicateAt(warp, op, 87) : 0;
  warp.cta->Arrive(warp, warp.exec, barrier, threads, mode != kArrive, votes);
}
// B2R.RESULT: what the last reducing barrier found.
void B2r(Warp& warp, const Op& op) {
  LaneWords out;
  out.v.fill(warp.barrier_count);
  warp.Write(op.d, out);
  const bool value = warp.barrier_reduction == 1   ? warp.barrier_all
                     : warp.barrier_reduction == 2 ? warp.barrier_any
                                                   : warp.barrier_count != 0;
  warp.WritePredicate(Bits(op, 81, 3), value ? ~0u : 0);
}
void BarReduce(Warp& warp, const Op& op) {
  warp.barrier_reduction = Bits(op, 74, 2);
  Bar(warp, op);
}

// ---- mbarriers ---------------------------------------------------------------------------------
// The 64 bits, as the words show that compiled code initialises them with:
//   1..20 arrivals that are missing, negated    43..62 the same at the start of a phase
//   21..42 transactions that are missing        63 the phase
constexpr uint64_t kCountMask = (uint64_t{1} << 20) - 1;
constexpr uint32_t kPendingAt = 1, kStartAt = 43, kTransactionsAt = 21;
constexpr uint64_t kTransactionsMask = (uint64_t{1} << 22) - 1;
constexpr uint64_t kPhase = uint64_t{1} << 63;

uint64_t EndPhaseIfDone(uint64_t state) {
  if ((state >> kPendingAt & kCountMask) == 0 &&
      (state >> kTransactionsAt & kTransactionsMask) == 0) {
    const uint64_t start = state >> kStartAt & kCountMask;
    state = (state ^ kPhase) | start << kPendingAt;
  }
  return state;
}
uint64_t ArriveOn(uint64_t state) {
  const uint64_t pending = ((state >> kPendingAt & kCountMask) + 1) & kCountMask;
  return EndPhaseIfDone((state & ~(kCountMask << kPendingAt)) | pending << kPendingAt);
}
uint64_t AddTransactions(uint64_t state, uint64_t count) {
  const uint64_t missing = ((state >> kTransactionsAt) + count) & kTransactionsMask;
  return (state & ~(kTransactionsMask << kTransactionsAt)) | missing << kTransactionsAt;
}
uint64_t ExpectOne(uint64_t state) { return AddTransactions(state, 1); }
uint64_t CompleteOne(uint64_t state) {
  return EndPhaseIfDone(AddTransactions(state, kTransactionsMask));
}
uint64_t MbarrierAddress(Warp& warp, const Op& op, uint32_t lane) {
  uint64_t address = warp.Row(op.a)[lane];
  address += static_cast<uint64_t>(static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8);
  if (op.word.is_uniform_form()) address += warp.uniform[Bits(op, 64, 6)];
  return address & 0xffffffffu;
}
void SyncsExchange(Warp& warp, const Op& op) {
  const uint64_t address =
      warp.uniform[op.a] + static_cast<uint64_t>(static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8);
  std::byte* const at =
      Access(warp, Space::kShared, warp.FirstLane(), address & 0xffffffffu, 8, true);
  if (at == nullptr) return;
  uint64_t old;
  std::memcpy(&old, at, sizeof old);
  const uint64_t value = uint64_t{warp.ScalarHigh(op.b)} << 32 | warp.Scalar(op.b);
  std::memcpy(at, &value, sizeof value);
  warp.WriteUniform(op.d, static_cast<uint32_t>(old));
  warp.WriteUniform(op.d == 63 ? 63u : op.d + 1u, static_cast<uint32_t>(old >> 32));
}
// One arrival, or transaction, a lane.
template <uint64_t (*kChange)(uint64_t)>
void SyncsArrive(Warp& warp, const Op& op) {
  LaneWords low, high;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const at =
        Access(warp, Space::kShared, lane, MbarrierAddress(warp, op, lane), 8, true);
    if (at == nullptr) return;
    uint64_t state;
    std::memcpy(&state, at, sizeof state);
    low.v[lane] = static_cast<uint32_t>(state);
    high.v[lane] = static_cast<uint32_t>(state >> 32);
    state = kChange(state);
    std::memcpy(at, &state, sizeof state);
  }
  WriteWide(warp, op.d, low, high);
}
// True if the phase of that parity (bit 31 of the register) is over.
void SyncsPhaseCheck(Warp& warp, const Op& op) {
  uint32_t done = 0;
  LaneWords scratch;
  const uint32_t* const parity = warp.Words(op.b, scratch);
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const at =
        Access(warp, Space::kShared, lane, MbarrierAddress(warp, op, lane), 8, false);
    if (at == nullptr) return;
    uint64_t state;
    std::memcpy(&state, at, sizeof state);
    done |= uint32_t{((state & kPhase) != 0) != ((parity[lane] >> 31) != 0)} << lane;
  }
  warp.WritePredicate(Bits(op, 81, 3), done);
  if ((done & warp.exec) != warp.exec) {
    // A wait that failed: the warp sleeps a little, and its other lanes get a chance.
    warp.time += 100;
    if (!warp.waiting.empty()) warp.Rotate();
  }
}
void Nothing(Warp&, const Op&) {}

}  // namespace

bool IKET_SIM_ISA::BindBarrier(Op& op) {
  switch (op.word.opcode()) {
    case 0xb1d:
    case 0x31d:
    case 0x91d:
    case 0x51d:
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      if (op.word.opcode() == 0xb1d || op.word.opcode() == 0x31d) {
        const uint32_t function = Bits(op, 74, 2);  // of a reduction: POPC, AND, OR
        if (Bits(op, 77, 2) == kReduce && function != 3) op.run = BarReduce;
        if (Bits(op, 77, 2) <= kArrive && function == 0) op.run = Bar;
      }
      return true;
    case 0x31c:
      op.d = TargetRow(Bits(op, 16, 8));
      op.latency = Latency::kShort;
      op.run = B2r;
      return true;
    case 0x5b2:
      op.guard_uniform = true;
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.a = static_cast<uint16_t>(Bits(op, 24, 6));
      op.b = {.kind = Operand::Kind::kUniform, .row = static_cast<uint16_t>(Bits(op, 32, 6))};
      if (Bits(op, 72, 4) == 1) op.run = SyncsExchange;
      return true;
    case 0x9a7:
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.latency = Latency::kShared;
      // .TRANS64.A1T0: one arrival. .RED.A0T1: one transaction more to wait for.
      if (Bits(op, 72, 15) == 0x1000) op.run = SyncsArrive<ArriveOn>;
      if (Bits(op, 72, 15) == 0x2004) op.run = SyncsArrive<ExpectOne>;
      return true;
    case 0x9b0:
      op.a = SourceRow(Bits(op, 24, 8));
      // .LDGSTSBAR.64: when the copies before it are done, which they are, ARVCNT (bit 70) arrives,
      // and TRANSCNT (bit 71) is the transaction that A0T1 announced.
      if (Bits(op, 72, 15) == 0xa) {
        if (Bits(op, 70, 2) == 1) op.run = SyncsArrive<ArriveOn>;
        if (Bits(op, 70, 2) == 2) op.run = SyncsArrive<CompleteOne>;
      }
      return true;
    case 0x5a7:
      op.a = SourceRow(Bits(op, 24, 8));
      op.b = {.row = SourceRow(Bits(op, 32, 8))};
      op.latency = Latency::kShared;
      if (Bits(op, 72, 9) <= 1) op.run = SyncsPhaseCheck;  // bit 72: .TRYWAIT, which may wait
      return true;
    case 0x9b1:
      op.run = Nothing;  // SYNCS.CCTL.IV
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
