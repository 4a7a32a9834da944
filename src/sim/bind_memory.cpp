// Loads, stores, asynchronous copies, fences.
#include <atomic>
#include <cstring>

#include "sim/bind.h"
#include "sim/cta.h"
#include "sim/memory_access.h"
#include "sim/sm.h"

namespace iket::sim {
namespace {

constexpr uint32_t SizeOf(uint32_t code) {
  constexpr uint32_t kSizes[8] = {1, 1, 2, 2, 4, 8, 16, 0};
  return kSizes[code];
}

// The address operand of a global or generic access: bit 91 says that a uniform register takes
// part, bit 76 that it is a descriptor (which this device does not need), bit 90 that the general
// register is a pair.
Addressing GlobalAddressing(const Op& op, uint32_t uniform_at) {
  Addressing how;
  how.offset = static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8;
  if (op.word.is_uniform_form()) {
    how.wide = Bit(op, 90);
    how.uniform = !Bit(op, 76);
    how.uniform_register = static_cast<uint16_t>(Bits(op, uniform_at, 6));
  } else {
    how.wide = Bit(op, 72);
  }
  return how;
}
Addressing WindowAddressing(const Op& op, uint32_t uniform_at) {
  Addressing how;
  how.offset = static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8;
  how.uniform = op.word.is_uniform_form();
  how.uniform_register = static_cast<uint16_t>(Bits(op, uniform_at, 6));
  return how;
}
template <Space kSpace>
void AddressesOf(Warp& warp, const Op& op, uint32_t uniform_at, uint64_t (&addresses)[kLanes]) {
  if constexpr (kSpace == Space::kShared || kSpace == Space::kLocal) {
    Addresses(warp, op, WindowAddressing(op, uniform_at), addresses);
    for (uint64_t& address : addresses) address &= 0xffffffffu;
  } else {
    Addresses(warp, op, GlobalAddressing(op, uniform_at), addresses);
  }
}

template <Space kSpace>
void Load(Warp& warp, const Op& op) {
  uint64_t addresses[kLanes];
  AddressesOf<kSpace>(warp, op, 32, addresses);
  const uint32_t code = Bits(op, 73, 3), size = SizeOf(code);
  uint32_t* const d = warp.Row(op.d);
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const std::byte* const bytes = FastAccess<kSpace>(warp, lane, addresses[lane], size, false);
    if (bytes == nullptr) return;
    uint32_t words[4] = {0, 0, 0, 0};
    switch (code) {
      case 4:
        std::memcpy(words, bytes, 4);
        d[lane] = words[0];
        continue;
      case 5:
        std::memcpy(words, bytes, 8);
        d[lane] = words[0];
        d[lane + kLanes] = words[1];
        continue;
      case 6:
        std::memcpy(words, bytes, 16);
        for (uint32_t i = 0; i < 4; ++i) d[lane + i * kLanes] = words[i];
        continue;
      case 1:
        d[lane] = static_cast<uint32_t>(int32_t{static_cast<int8_t>(*bytes)});
        continue;
      case 3: {
        int16_t half;
        std::memcpy(&half, bytes, 2);
        d[lane] = static_cast<uint32_t>(half);
        continue;
      }
      default:
        std::memcpy(words, bytes, size);
        d[lane] = words[0];
        continue;
    }
  }
}

template <Space kSpace>
void Store(Warp& warp, const Op& op) {
  uint64_t addresses[kLanes];
  AddressesOf<kSpace>(warp, op, 64, addresses);
  const uint32_t size = SizeOf(Bits(op, 73, 3));
  const uint32_t* const b = warp.Row(op.b.row);
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const bytes = FastAccess<kSpace>(warp, lane, addresses[lane], size, true);
    if (bytes == nullptr) return;
    if (size == 4) {
      std::memcpy(bytes, &b[lane], 4);
      continue;
    }
    uint32_t words[4] = {b[lane], 0, 0, 0};
    for (uint32_t i = 1; i * 4 < size; ++i) words[i] = b[lane + i * kLanes];
    std::memcpy(bytes, words, size);
  }
}

// LDGSTS: from global memory to shared memory; done at once, so that waiting for it is no work.
// Lanes that its predicate leaves out get zeros. With .ZFILL an address that is k bytes past a
// multiple of the size means that only the first size - k bytes from there are copied, and zeros
// behind them: so the compiler says how many bytes cp.async shall read.
void Ldgsts(Warp& warp, const Op& op) {
  // The shared address stands in the register at 16, the global one in the pair at 24.
  const uint32_t* const to = warp.Row(op.b.row);
  const Wide from = WideRow(warp, op.a);
  const uint32_t size = SizeOf(Bits(op, 73, 3));
  const uint32_t copied = PredicateAt(warp, op, 87);
  const bool fills = Bit(op, 82);
  const auto source_offset =
      static_cast<uint64_t>(int64_t{static_cast<int32_t>(Bits(op, 32, 12) << 20) >> 20});
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint32_t offset = to[lane] + static_cast<uint32_t>(op.immediate);
    std::byte* const target = Access(warp, Space::kShared, lane, offset, size, true);
    if (target == nullptr) return;
    if ((copied >> lane & 1) == 0) {
      std::memset(target, 0, size);
      continue;
    }
    const uint64_t address = from[lane] + source_offset;
    const uint64_t missing = fills ? address & (size - 1) : 0;
    const std::byte* const source =
        Access(warp, Space::kGlobal, lane, address - missing, size, false);
    if (source == nullptr) return;
    std::memcpy(target, source, size - missing);
    std::memset(target + size - missing, 0, missing);
  }
}

void Fence(Warp& warp, const Op&) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  warp.time += 20;
}
void Nothing(Warp&, const Op&) {}

// QSPC: which space a generic address is of. Bits 73 and 74 say which is asked for: global, local,
// shared, and shared of another CTA of the cluster, of which there is one here.
void Qspc(Warp& warp, const Op& op) {
  const Wide a = WideRow(warp, op.a);
  const uint32_t asked = Bits(op, 73, 2);
  uint32_t inside = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t address = a[i] + static_cast<uint64_t>(op.immediate);
    const bool shared = address - kSharedWindow < kWindowBytes;
    const bool local = address - kLocalWindow < kWindowBytes;
    inside |= uint32_t{asked == 0 ? !shared && !local : asked == 1 ? local : shared} << i;
  }
  LaneWords out;
  out.v.fill(0);
  warp.Write(op.d, out);
  warp.WritePredicate(Bits(op, 81, 3), inside);
}

template <Space kSpace>
void BindLoad(Op& op) {
  op.d = TargetRow(Bits(op, 16, 8));
  op.a = SourceRow(Bits(op, 24, 8));
  op.latency = kSpace == Space::kShared ? Latency::kShared : Latency::kGlobal;
  if (Bits(op, 73, 3) != 7) op.run = Load<kSpace>;
}
template <Space kSpace>
void BindStore(Op& op) {
  op.a = SourceRow(Bits(op, 24, 8));
  op.b = {.row = SourceRow(Bits(op, 32, 8))};
  if (Bits(op, 73, 3) != 7) op.run = Store<kSpace>;
}

}  // namespace

bool BindMemory(Op& op) {
  const bool uniform = op.word.is_uniform_form();
  switch (op.word.opcode()) {
    case 0x980:
    case 0x380:
      BindLoad<Space::kGeneric>(op);
      return true;
    case 0x981:
    case 0x381:
      BindLoad<Space::kGlobal>(op);
      return true;
    case 0x983:
      BindLoad<Space::kLocal>(op);
      return true;
    case 0x984:
      BindLoad<Space::kShared>(op);
      return true;
    case 0x985:
    case 0x385:
      BindStore<Space::kGeneric>(op);
      return true;
    case 0x986:
    case 0x386:
      BindStore<Space::kGlobal>(op);
      return true;
    case 0x387:
    case 0x987:
      BindStore<Space::kLocal>(op);
      return true;
    case 0x388:
    case 0x988:
      BindStore<Space::kShared>(op);
      return true;
    case 0xfae:
      // Known: 4, 8 and 16 bytes, a 64-bit global address under a descriptor, its offset at 32, the
      // shared address's at 44.
      if (Bits(op, 73, 3) < 4 || Bits(op, 73, 3) > 6) return true;
      op.b = {.row = SourceRow(Bits(op, 16, 8))};
      op.a = SourceRow(Bits(op, 24, 8));
      op.latency = Latency::kGlobal;
      op.immediate = static_cast<int32_t>(Bits(op, 44, 20) << 12) >> 12;
      op.run = Ldgsts;
      return true;
    case 0x992:  // MEMBAR
    case 0x3c6:  // FENCE.VIEW.ASYNC
      op.run = Fence;
      return true;
    case 0x98f:  // CCTL
    case 0x9ab:  // ERRBAR
    case 0x5ab:  // CGAERRBAR
    case 0x9af:  // LDGDEPBAR: copies are done already
    case 0x91a:  // DEPBAR.LE
      op.run = Nothing;
      return true;
    case 0x3aa:
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.immediate = static_cast<int32_t>(Bits(op, 40, 24) << 8) >> 8;
      if (Bit(op, 72) && !uniform) op.run = Qspc;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
