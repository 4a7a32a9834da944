// record.h: the 16-byte records that warps write into rings.
//
// A record is four little-endian 32-bit words, aligned to 16 bytes, so nothing straddles the end of
// a ring and a reader that starts at any record finds its feet. Word 1 says what the record is.
//
//   word 0        word 1                       word 2             word 3
//   clock         0b0 | 31-bit event id        payload low        payload high      event
//   clock         0x8 | 28-bit kernel          globaltimer low    globaltimer high  begin
//   ctaid.x       0x9 | 26-bit packed tid      ctaid.y | z << 16  grid id           begin, identity
//   clock         0xa | 28-bit kernel          globaltimer low    globaltimer high  end
//   ctaid.x       0xb | 26-bit packed tid      ctaid.y | z << 16  grid id           end, identity
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
  kBeginIdentity,
  kEnd,
  kEndIdentity,
  kUnknown,
};

// The tags of the records that the trampolines write; the low 28 bits are free for data.
inline constexpr uint32_t kTagBegin = 0x80000000u;
inline constexpr uint32_t kTagBeginIdentity = 0x90000000u;
inline constexpr uint32_t kTagEnd = 0xa0000000u;
inline constexpr uint32_t kTagEndIdentity = 0xb0000000u;
inline constexpr uint32_t kTagDataMask = 0x0fffffffu;
inline constexpr uint32_t kEventIdMask = 0x7fffffffu;
// Kernels are numbered by the process that loads them; the number has 28 bits.
inline constexpr uint32_t kMaxKernels = 1u << 28;

constexpr RecordKind KindOf(const Record& record) {
  if ((record.tag >> 31) == 0) return record.tag == 0 ? RecordKind::kUnknown : RecordKind::kEvent;
  switch (record.tag & ~kTagDataMask) {
    case kTagBegin:
      return RecordKind::kBegin;
    case kTagBeginIdentity:
      return RecordKind::kBeginIdentity;
    case kTagEnd:
      return RecordKind::kEnd;
    case kTagEndIdentity:
      return RecordKind::kEndIdentity;
    default:
      return RecordKind::kUnknown;
  }
}

// Who a warp is, out of an identity record (kBeginIdentity, kEndIdentity).
struct Identity {
  uint32_t cta_x = 0;
  uint16_t cta_y = 0;
  uint16_t cta_z = 0;
  uint32_t grid = 0;        // %gridid of the launch, low 32 bits
  uint32_t packed_tid = 0;  // threadIdx of some lane of the warp: x 16 bits, y 10 bits, z 6 bits
};

constexpr Identity IdentityOf(const Record& record) {
  return Identity{.cta_x = record.clock,
                  .cta_y = static_cast<uint16_t>(record.low),
                  .cta_z = static_cast<uint16_t>(record.low >> 16),
                  .grid = record.high,
                  .packed_tid = record.tag & kTagDataMask};
}

// %globaltimer in ns, out of a kBegin or kEnd record.
constexpr uint64_t GlobalTimerOf(const Record& record) {
  return static_cast<uint64_t>(record.high) << 32 | record.low;
}

}  // namespace iket::ring
