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

// ---- many lanes at once ------------------------------------------------------------------------
// Where the words of all executing lanes are, if they are in one piece of memory and aligned.
struct Span {
  std::byte* host = nullptr;  // of address `low`; null: take the lanes one by one
  uint64_t low = 0;
  bool consecutive = false;  // all 32 lanes, each behind the one before
  bool same = false;         // one word for all of them
};
template <Space kSpace>
std::byte* Piece(Warp& warp, uint64_t low, uint64_t size, bool write) {
  if constexpr (kSpace == Space::kShared) {
    return warp.cta->Shared(low, static_cast<uint32_t>(size));
  } else {
    return warp.sm->memory.Find(low, size, write);
  }
}
template <Space kSpace>
Span SpanOf(Warp& warp, uint64_t (&addresses)[kLanes], uint32_t size, bool write) {
  if constexpr (kSpace != Space::kGlobal && kSpace != Space::kShared) return {};
  const uint64_t first = addresses[warp.FirstLane() % kLanes];
  if (warp.exec == kAllLanes) {
    uint64_t apart = first & (size - 1);
    for (uint32_t i = 0; i < kLanes; ++i) apart |= addresses[i] ^ (first + uint64_t{i} * size);
    if (apart == 0) {
      return {Piece<kSpace>(warp, first, uint64_t{kLanes} * size, write), first, true, false};
    }
  }
  // Lanes that do not execute are where the first one is: harmless to read.
  uint64_t low = first, high = first, all = first;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t address = (warp.exec >> i & 1) != 0 ? addresses[i] : first;
    addresses[i] = address;
    low = address < low ? address : low;
    high = address > high ? address : high;
    all |= address;
  }
  if ((all & (size - 1)) != 0 || high - low >= kWindowBytes) return {};
  return {Piece<kSpace>(warp, low, high - low + size, write), low, false, low == high};
}

// A lane's bytes as the words of its registers.
template <uint32_t kCode>
inline void Unpack(const std::byte* bytes, uint32_t (&words)[4]) {
  if constexpr (kCode == 1) {
    words[0] = static_cast<uint32_t>(int32_t{static_cast<int8_t>(*bytes)});
  } else if constexpr (kCode == 3) {
    int16_t half;
    std::memcpy(&half, bytes, 2);
    words[0] = static_cast<uint32_t>(int32_t{half});
  } else {
    words[0] = 0;
    std::memcpy(words, bytes, SizeOf(kCode));
  }
}

template <Space kSpace, uint32_t kCode>
void Load(Warp& warp, const Op& op) {
  constexpr uint32_t kSize = SizeOf(kCode), kWords = kSize <= 4 ? 1 : kSize / 4;
  uint64_t addresses[kLanes];
  AddressesOf<kSpace>(warp, op, 32, addresses);
  uint32_t* const d = warp.Row(op.d);
  const Span span = SpanOf<kSpace>(warp, addresses, kSize, false);
  if (span.host != nullptr && span.same) {
    // Read once: a host that writes the word meanwhile must not divide the warp.
    uint32_t words[4];
    Unpack<kCode>(span.host, words);
    for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
      for (uint32_t w = 0; w < kWords; ++w) d[w * kLanes + lane] = words[w];
    }
    return;
  }
  if (span.host != nullptr && warp.exec == kAllLanes) {
    if (span.consecutive && kSize >= 4) {
      const std::byte* const host = span.host;
      for (uint32_t w = 0; w < kWords; ++w) {
        for (uint32_t i = 0; i < kLanes; ++i) {
          std::memcpy(&d[w * kLanes + i], host + (i * kWords + w) * 4, 4);
        }
      }
      return;
    }
    for (uint32_t i = 0; i < kLanes; ++i) {
      uint32_t words[4];
      Unpack<kCode>(span.host + (addresses[i] - span.low), words);
      for (uint32_t w = 0; w < kWords; ++w) d[w * kLanes + i] = words[w];
    }
    return;
  }
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const std::byte* const bytes = span.host != nullptr
                                       ? span.host + (addresses[lane] - span.low)
                                       : Access(warp, kSpace, lane, addresses[lane], kSize, false);
    if (bytes == nullptr) return;
    uint32_t words[4];
    Unpack<kCode>(bytes, words);
    for (uint32_t w = 0; w < kWords; ++w) d[w * kLanes + lane] = words[w];
  }
}

template <Space kSpace, uint32_t kCode>
void Store(Warp& warp, const Op& op) {
  constexpr uint32_t kSize = SizeOf(kCode), kWords = kSize <= 4 ? 1 : kSize / 4;
  uint64_t addresses[kLanes];
  AddressesOf<kSpace>(warp, op, 64, addresses);
  const uint32_t* const b = warp.Row(op.b.row);
  const Span span = SpanOf<kSpace>(warp, addresses, kSize, true);
  if (span.consecutive && span.host != nullptr && kSize >= 4) {
    for (uint32_t w = 0; w < kWords; ++w) {
      for (uint32_t i = 0; i < kLanes; ++i) {
        std::memcpy(span.host + (i * kWords + w) * 4, &b[w * kLanes + i], 4);
      }
    }
    return;
  }
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const bytes = span.host != nullptr
                                 ? span.host + (addresses[lane] - span.low)
                                 : Access(warp, kSpace, lane, addresses[lane], kSize, true);
    if (bytes == nullptr) return;
    uint32_t words[kWords];
    for (uint32_t w = 0; w < kWords; ++w) words[w] = b[w * kLanes + lane];
    std::memcpy(bytes, words, kSize);
  }
}

// LDGSTS: from global memory to shared memory; done at once, so that waiting for it is no work.
// Lanes that its predicate leaves out get zeros. With .ZFILL an address that is k bytes past a
// multiple of the size means that only the first size - k bytes from there are copied, and zeros
// behind them: so the compiler says how many bytes cp.async shall read.
void Ldgsts(Warp& warp, const Op& op) {
  // The shared address stands in the register at 16, with an offset at 44; the global one in the
  // pair at 24, with an offset at 32.
  const uint32_t* const to = warp.Row(op.b.row);
  const Wide from = WideRow(warp, op.a);
  const uint32_t size = SizeOf(Bits(op, 73, 3));
  const uint32_t copied = PredicateAt(warp, op, 87);
  const bool fills = Bit(op, 82);
  const auto source_offset =
      static_cast<uint64_t>(int64_t{static_cast<int32_t>(Bits(op, 32, 12) << 20) >> 20});
  uint64_t targets[kLanes], sources[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) {
    targets[i] = to[i] + static_cast<uint32_t>(op.immediate);
    sources[i] = from[i] + source_offset;
  }
  if (!fills && (warp.exec & ~copied) == 0) {
    const Span target = SpanOf<Space::kShared>(warp, targets, size, true);
    const Span source = SpanOf<Space::kGlobal>(warp, sources, size, false);
    if (size == 16 && target.host != nullptr && source.host != nullptr) {
      for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
        std::memcpy(target.host + (targets[lane] - target.low),
                    source.host + (sources[lane] - source.low), 16);
      }
      return;
    }
  }
  for (uint32_t mask = warp.exec; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::byte* const target = Access(warp, Space::kShared, lane, targets[lane], size, true);
    if (target == nullptr) return;
    if ((copied >> lane & 1) == 0) {
      std::memset(target, 0, size);
      continue;
    }
    const uint64_t address = sources[lane];
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
  const uint32_t asked = Bits(op, 73, 2);
  const Wide a = WideRow(warp, op.a);
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

// The handler of an access, by the code of its size (bits 73..75).
template <Space kSpace>
void BindLoad(Op& op) {
  constexpr Handler kLoads[8] = {Load<kSpace, 0>, Load<kSpace, 1>, Load<kSpace, 2>, Load<kSpace, 3>,
                                 Load<kSpace, 4>, Load<kSpace, 5>, Load<kSpace, 6>, nullptr};
  op.d = TargetRow(Bits(op, 16, 8));
  op.a = SourceRow(Bits(op, 24, 8));
  op.latency = kSpace == Space::kShared ? Latency::kShared : Latency::kGlobal;
  op.run = kLoads[Bits(op, 73, 3)];
}
template <Space kSpace>
void BindStore(Op& op) {
  constexpr Handler kStores[8] = {Store<kSpace, 0>, Store<kSpace, 0>, Store<kSpace, 2>,
                                  Store<kSpace, 2>, Store<kSpace, 4>, Store<kSpace, 5>,
                                  Store<kSpace, 6>, nullptr};
  op.a = SourceRow(Bits(op, 24, 8));
  op.b = {.row = SourceRow(Bits(op, 32, 8))};
  op.run = kStores[Bits(op, 73, 3)];
}

}  // namespace

bool IKET_SIM_ISA::BindMemory(Op& op) {
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
