// record.h: the 16-byte records that warps write into rings.
//
// A record is four little-endian 32-bit words, aligned to 16 bytes, so nothing straddles the end of
// a ring and a reader that starts at any record finds its feet. Word 1 says what the record is.
//
//   word 0     word 1                          word 2             word 3
//   clock      event id, top bit 0             payload low        payload high       event
//   clock      0x80000400 | packed kernel      globaltimer low    previous end       begin
//   ctaid.x    0x80000c00 | packed tid         ctaid.y | z << 16  grid id            identity
//   clock      0x80001400 | index              payload            payload            more
//
// "More" is what has no room in an event: its third and fourth word of payload (index 1), its fifth
// and sixth (2), and so on. It has the clock of the event, which tells whose it is where lane
// groups of a divergent warp write in turns.
//
// A warp writes begin and identity, one after the other, when it starts. It writes nothing into the
// ring when it ends: the clock of its end goes to the ring's header (layout.h), and from there, as
// `previous end`, into the begin of the next warp on this ring.
//
// Words 2 and 3 of an event are meaningful only as far as its declaration has a payload: a 32-bit
// payload is word 2, a 64-bit one is both; whatever else stands there is left over from an older
// lap. Bytes of a ring are untrusted: every bit pattern is some record or kUnknown, never an error.
#pragma once

#include <cstdint>

namespace iket::ring {

inline constexpr uint32_t kRecordBytes = 16;

// As it stands in memory.
struct Record {
  uint32_t clock;
  uint32_t tag;
  uint32_t low;
  uint32_t high;
};
static_assert(sizeof(Record) == kRecordBytes);

enum class RecordKind : uint8_t {
  kEvent,
  kBegin,
  kIdentity,
  kMore,
  kUnknown,
};

// Tags of what is not an event: the top bit, and a type in bits 10..15. A packed threadIdx leaves
// those six bits free (x 10 bits at 0, y 10 bits at 16, z 6 bits at 26), but for the top bit of z:
// of threadIdx.z only the low five bits survive.
inline constexpr uint32_t kTagTop = 0x80000000u;
inline constexpr uint32_t kTagTypeMask = kTagTop | 0x0000fc00u;
inline constexpr uint32_t kTagBegin = kTagTop | 1u << 10;
inline constexpr uint32_t kTagIdentity = kTagTop | 3u << 10;
inline constexpr uint32_t kTagMore = kTagTop | 5u << 10;
inline constexpr uint32_t kMostMore = 4;  // the highest index
inline constexpr uint32_t kEventIdMask = 0x7fffffffu;

// Kernels are numbered by the process that loads them. The number is packed around the type bits.
inline constexpr uint32_t kMaxKernels = 1u << 25;
constexpr uint32_t BeginTag(uint32_t kernel) {
  return kTagBegin | (kernel & 0x3ffu) | (kernel >> 10) << 16;
}
constexpr uint32_t KernelOf(uint32_t begin_tag) {
  return (begin_tag & 0x3ffu) | ((begin_tag & ~kTagTop) >> 16) << 10;
}

constexpr RecordKind KindOf(const Record& record) {
  if ((record.tag >> 31) == 0) return record.tag == 0 ? RecordKind::kUnknown : RecordKind::kEvent;
  switch (record.tag & kTagTypeMask) {
    case kTagBegin:
      return RecordKind::kBegin;
    case kTagIdentity:
      return RecordKind::kIdentity;
    case kTagMore:
      return record.tag > kTagMore && record.tag <= kTagMore + kMostMore ? RecordKind::kMore
                                                                         : RecordKind::kUnknown;
    default:
      return RecordKind::kUnknown;
  }
}

constexpr bool HasClock(const Record& record) {
  const RecordKind kind = KindOf(record);
  return kind == RecordKind::kEvent || kind == RecordKind::kBegin || kind == RecordKind::kMore;
}

// Clocks wrap: right for moments less than 2^31 cycles apart.
constexpr bool IsYounger(uint32_t clock, uint32_t than) {
  return static_cast<int32_t>(clock - than) > 0;
}

// Who a warp is, out of an identity record.
struct Identity {
  uint32_t cta_x = 0;
  uint16_t cta_y = 0;  // 0 in kernels that read neither blockIdx.y nor blockIdx.z
  uint16_t cta_z = 0;
  uint32_t grid = 0;  // %gridid of the launch, low 32 bits
  // threadIdx of one lane of the warp; z modulo 32.
  uint16_t tid_x = 0;
  uint16_t tid_y = 0;
  uint16_t tid_z = 0;

  friend bool operator==(const Identity&, const Identity&) = default;
};

constexpr Identity IdentityOf(const Record& record) {
  return Identity{.cta_x = record.clock,
                  .cta_y = static_cast<uint16_t>(record.low),
                  .cta_z = static_cast<uint16_t>(record.low >> 16),
                  .grid = record.high,
                  .tid_x = static_cast<uint16_t>(record.tag & 0x3ffu),
                  .tid_y = static_cast<uint16_t>((record.tag >> 16) & 0x3ffu),
                  .tid_z = static_cast<uint16_t>((record.tag >> 26) & 0x1fu)};
}

// The warp's index in a CTA of block_x * block_y * block_z threads. Exact up to block_z = 32.
constexpr uint32_t WarpInCta(const Identity& id, uint32_t block_x, uint32_t block_y) {
  return (id.tid_x + block_x * (id.tid_y + block_y * uint32_t{id.tid_z})) / 32;
}

}  // namespace iket::ring
