// Atomics and reductions on global, shared and generic memory.
//
// Lanes of a warp are done in order of their number. Other SMs run on other host threads: every
// update is one atomic operation of the host, or a compare-and-swap loop.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/memory_access.h"

namespace iket::sim {
namespace {

enum class Type : uint8_t { kU32, kS32, kU64, kS64, kF16x2, kBf16x2, kF32Ftz, kF32, kF64 };
enum class Function : uint8_t {
  kAdd,
  kMin,
  kMax,
  kInc,
  kDec,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompare
};

bool IsWide(Type type) { return type == Type::kU64 || type == Type::kS64 || type == Type::kF64; }

template <typename T>
T Integer(Function function, T old, T value) {
  switch (function) {
    case Function::kAdd:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(value));
    case Function::kMin:
      return old < value ? old : value;
    case Function::kMax:
      return old < value ? value : old;
    case Function::kInc:
      return old >= value ? T{0} : static_cast<T>(old + 1);
    case Function::kDec:
      return old == 0 || old > value ? value : static_cast<T>(old - 1);
    case Function::kAnd:
      return old & value;
    case Function::kOr:
      return old | value;
    case Function::kXor:
      return old ^ value;
    default:
      return value;
  }
}
uint64_t Combine(Type type, Function function, uint64_t old, uint64_t value) {
  const auto o32 = static_cast<uint32_t>(old), v32 = static_cast<uint32_t>(value);
  switch (type) {
    case Type::kU32:
      return Integer<uint32_t>(function, o32, v32);
    case Type::kS32:
      return static_cast<uint32_t>(
          Integer<int32_t>(function, static_cast<int32_t>(o32), static_cast<int32_t>(v32)));
    case Type::kU64:
      return Integer<uint64_t>(function, old, value);
    case Type::kS64:
      return static_cast<uint64_t>(
          Integer<int64_t>(function, static_cast<int64_t>(old), static_cast<int64_t>(value)));
    case Type::kF32Ftz:
      return Flush(Canonical(AsFloat(Flush(o32)) + AsFloat(Flush(v32))));
    case Type::kF32:
      return Canonical(AsFloat(o32) + AsFloat(v32));
    case Type::kF64:
      return CanonicalDouble(AsDouble(old) + AsDouble(value),
                             std::isnan(AsDouble(old)) || std::isnan(AsDouble(value)));
    case Type::kF16x2:
      return MapHalves(o32, v32, [](uint16_t a, uint16_t b) {
        return HalfFromFloat(FloatFromHalf(a) + FloatFromHalf(b));
      });
    case Type::kBf16x2:
      return MapHalves(o32, v32, [](uint16_t a, uint16_t b) {
        return BfloatFromFloat(FloatFromBfloat(a) + FloatFromBfloat(b));
      });
  }
  return value;
}

template <typename T>
T Update(std::byte* at, Type type, Function function, T value) {
  const std::atomic_ref<T> word(*reinterpret_cast<T*>(at));
  T old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, static_cast<T>(Combine(type, function, old, value)),
                                     std::memory_order_acq_rel)) {
  }
  return old;
}
template <typename T>
T CompareAndSwap(std::byte* at, T expected, T value) {
  const std::atomic_ref<T> word(*reinterpret_cast<T*>(at));
  word.compare_exchange_strong(expected, value, std::memory_order_acq_rel);
  return expected;  // what was there
}

struct Atomic {
  Type type;
  Function function;
};
// What the loader of an operation found out, in op.immediate.
Atomic AtomicOf(const Op& op) {
  return {static_cast<Type>(op.immediate & 0xff), static_cast<Function>(op.immediate >> 8 & 0xff)};
}

template <Space kSpace>
void AtomicAddresses(Warp& warp, const Op& op, uint64_t (&addresses)[kLanes]) {
  Addressing how;
  how.offset = static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8;
  how.uniform_register = static_cast<uint16_t>(Bits(op, 64, 6));
  if constexpr (kSpace == Space::kShared) {
    how.uniform = op.word.is_uniform_form();
  } else {
    how.wide = Bit(op, 72);  // a uniform register is a descriptor here, and not needed
  }
  Addresses(warp, op, how, addresses);
  if constexpr (kSpace == Space::kShared) {
    for (uint64_t& address : addresses) address &= 0xffffffffu;
  }
}

// Shared memory cannot do all that global memory can. Where an ATOM has a predicate it is done in
// global memory alone, and the predicate says for which lanes; the program does the others itself.
template <Space kSpace>
uint32_t LanesToDo(Warp& warp, const Op& op, const uint64_t (&addresses)[kLanes]) {
  const uint32_t predicate = Bits(op, 81, 3);
  if (kSpace != Space::kGeneric || predicate == 7) return warp.exec;
  uint32_t global = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool in_window =
        addresses[i] - kSharedWindow < kWindowBytes || addresses[i] - kLocalWindow < kWindowBytes;
    global |= uint32_t{!in_window} << i;
  }
  warp.WritePredicate(predicate, global);
  return warp.exec & global;
}

// d = what was there; d may be RZ.
template <Space kSpace>
void DoAtomic(Warp& warp, const Op& op) {
  const Atomic how = AtomicOf(op);
  const bool wide = IsWide(how.type);
  uint64_t addresses[kLanes];
  AtomicAddresses<kSpace>(warp, op, addresses);
  const uint32_t lanes = LanesToDo<kSpace>(warp, op, addresses);
  const Wide b = WideRow(warp, op.b.row), c = WideRow(warp, op.c.row);
  LaneWords low, high;
  low.v.fill(0);
  high.v.fill(0);
  for (uint32_t mask = lanes; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const at = Access(warp, kSpace, lane, addresses[lane], wide ? 8 : 4, true);
    if (at == nullptr) return;
    uint64_t old;
    if (how.function == Function::kCompare) {
      old = wide ? CompareAndSwap<uint64_t>(at, b[lane], c[lane])
                 : CompareAndSwap<uint32_t>(at, b.low[lane], c.low[lane]);
    } else {
      old = wide ? Update<uint64_t>(at, how.type, how.function, b[lane])
                 : Update<uint32_t>(at, how.type, how.function, b.low[lane]);
    }
    low.v[lane] = static_cast<uint32_t>(old);
    high.v[lane] = static_cast<uint32_t>(old >> 32);
  }
  warp.Write(op.d, low);
  if (wide) warp.Write(op.d + 1u, high);
}

// ATOMS.CAST, ATOM.CAST: compares and swaps, and says in d whether it did.
template <Space kSpace>
void DoCast(Warp& warp, const Op& op) {
  const bool wide = IsWide(AtomicOf(op).type);
  uint64_t addresses[kLanes];
  AtomicAddresses<kSpace>(warp, op, addresses);
  const Wide b = WideRow(warp, op.b.row), c = WideRow(warp, op.c.row);
  LaneWords out;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const at = Access(warp, kSpace, lane, addresses[lane], wide ? 8 : 4, true);
    if (at == nullptr) return;
    out.v[lane] = wide ? CompareAndSwap<uint64_t>(at, b[lane], c[lane]) == b[lane]
                       : CompareAndSwap<uint32_t>(at, b.low[lane], c.low[lane]) == b.low[lane];
  }
  warp.Write(op.d, out);
  if (!wide) return;
  LaneWords zeros;
  zeros.v.fill(0);
  warp.Write(op.d + 1u, zeros);
}

// ATOMS.POPC.INC: one more for each lane.
void DoPopcInc(Warp& warp, const Op& op) {
  uint64_t addresses[kLanes];
  AtomicAddresses<Space::kShared>(warp, op, addresses);
  LaneWords out;
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const at = Access(warp, Space::kShared, lane, addresses[lane], 4, true);
    if (at == nullptr) return;
    out.v[lane] = Update<uint32_t>(at, Type::kU32, Function::kAdd, 1);
  }
  warp.Write(op.d, out);
}

bool IntegerType(const Op& op, Type& type) {
  constexpr Type kTypes[4] = {Type::kU32, Type::kS32, Type::kU64, Type::kS64};
  const uint32_t code = Bits(op, 73, 4);
  if (code > 3) return false;
  type = kTypes[code];
  return true;
}
bool FloatType(const Op& op, Type& type) {
  switch (Bits(op, 73, 4)) {
    case 0:
      type = Type::kF16x2;
      return true;
    case 3:
      type = Type::kBf16x2;
      return true;
    case 9:
      type = Type::kF32Ftz;
      return true;
    case 12:
      type = Type::kF32;
      return true;
    case 15:
      type = Type::kF64;
      return true;
    default:
      return false;
  }
}
void Set(Op& op, Type type, Function function, Handler handler) {
  op.immediate = static_cast<int64_t>(type) | static_cast<int64_t>(function) << 8;
  op.run = handler;
}

template <Space kSpace>
void Bind(Op& op, bool is_float, uint32_t function_bits, bool has_result) {
  op.latency = kSpace == Space::kShared ? Latency::kShared : Latency::kGlobal;
  if (has_result) op.d = TargetRow(Bits(op, 16, 8));
  op.a = SourceRow(Bits(op, 24, 8));
  op.b = {.row = SourceRow(Bits(op, 32, 8))};
  Type type{};
  const uint32_t function = Bits(op, 87, function_bits);
  if (!(is_float ? FloatType(op, type) : IntegerType(op, type))) return;
  if (function > 8 || (is_float && function != 0)) return;
  const bool counts = function == 3 || function == 4;  // INC, DEC: of unsigned words
  if (counts && type != Type::kU32) return;
  if (kSpace == Space::kGlobal && has_result && Bits(op, 81, 3) != 7) return;
  // A sum of floats is none of shared memory's: it has the predicate that says so.
  if (kSpace == Space::kGeneric && is_float && Bits(op, 81, 3) == 7) return;
  Set(op, type, static_cast<Function>(function), DoAtomic<kSpace>);
}
template <Space kSpace>
void BindCompare(Op& op) {
  op.latency = kSpace == Space::kShared ? Latency::kShared : Latency::kGlobal;
  op.d = TargetRow(Bits(op, 16, 8));
  op.a = SourceRow(Bits(op, 24, 8));
  op.b = {.row = SourceRow(Bits(op, 32, 8))};
  op.c = {.row = SourceRow(Bits(op, 64, 8))};
  Type type{};
  if (op.word.is_uniform_form() || !IntegerType(op, type)) return;
  const bool cast = Bit(op, 87), predicate = kSpace != Space::kShared && Bits(op, 81, 3) != 7;
  if (predicate && (cast || kSpace == Space::kGlobal)) return;
  Set(op, type, Function::kCompare, cast ? DoCast<kSpace> : DoAtomic<kSpace>);
}

}  // namespace

bool IKET_SIM_ISA::BindAtomic(Op& op) {
  switch (op.word.opcode()) {
    case 0x3a8:
    case 0x9a8:
      Bind<Space::kGlobal>(op, false, 4, true);
      return true;
    case 0x3a3:
    case 0x9a3:
      Bind<Space::kGlobal>(op, true, 4, true);
      return true;
    case 0x38a:
    case 0x98a:
      Bind<Space::kGeneric>(op, false, 4, true);
      return true;
    case 0x3a2:
    case 0x9a2:
      Bind<Space::kGeneric>(op, true, 4, true);
      return true;
    case 0x98e:
    case 0x38e:
      Bind<Space::kGlobal>(op, false, 3, false);
      return true;
    case 0x9a6:
    case 0x3a6:
      Bind<Space::kGlobal>(op, true, 3, false);
      return true;
    case 0x38c:
    case 0x98c:
      Bind<Space::kShared>(op, false, 4, true);
      return true;
    case 0x3a9:
      BindCompare<Space::kGlobal>(op);
      return true;
    case 0x38b:
      BindCompare<Space::kGeneric>(op);
      return true;
    case 0x38d:
      BindCompare<Space::kShared>(op);
      return true;
    case 0xf8c:
      op.latency = Latency::kShared;
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      if (op.d == kSinkRow) op.run = DoPopcInc;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
