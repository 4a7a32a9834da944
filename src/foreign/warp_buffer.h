// warp_buffer.h: the records of one warp, as sites that run-iket patched leave them.
//
// A buffer begins with 16 bytes: u32 bytes written, these included; u16 0; u16 SM times 16; u64
// %globaltimer when the warp began. Then records, in the order in which they were stored:
//
//   NativeDump          u32 low word of %globaltimer, its low five bits the event; at 4 a payload
//   of
//                       32 bits, at 8 one of 64
//   ExtendedNativeDump  u32 the timer, u32 the event; at 8 the payload
//   the end             u32 the timer, event 0
//
// A record of a kernel with 64-bit payloads begins at a multiple of 8. A site that no lane reached,
// but whose address was advanced, leaves zeros: they are passed over. The timer's low word is put
// together with the begin and what came before: silences of 4.29 s and more cannot be seen.
//
// The bytes are untrusted: any give a warp, and what does not fit is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "foreign/raw_run.h"

namespace iket::foreign {

// How long the records of one kernel are.
class RecordForms {
 public:
  RecordForms(const RawContext& module, uint32_t max_payload_bytes);

  struct Form {
    bool known = false;
    uint8_t bytes = 4;          // of the whole record
    uint8_t payload_at = 0;     // of the payload
    uint8_t payload_bytes = 0;  // 0 none, 4 or 8
  };
  Form Of(uint32_t event) const { return event < forms_.size() ? forms_[event] : shortest_; }
  bool extended() const { return extended_; }
  uint8_t shortest_bytes() const { return shortest_.bytes; }

 private:
  Form FormOf(uint8_t payload) const;

  bool extended_ = false;
  Form shortest_;
  std::vector<Form> forms_;  // by event
};

struct WarpRecord {
  uint64_t ns = 0;  // %globaltimer
  uint32_t event = 0;
  uint64_t payload = 0;
};

struct WarpBuffer {
  uint16_t sm = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // of the last record where no end is known
  bool has_end = false;
  uint32_t early_exits = 0;  // ends before the last: lanes that left earlier
  uint32_t unknown = 0;      // records of events that nobody declared; where they end is a guess
  uint32_t backward = 0;     // steps back of the timer; such a record has the time before it
  uint64_t lost_bytes = 0;   // written past the buffer, so over the next one's
  bool malformed = false;    // what the header says cannot be
};

// The header alone; nothing of a warp that was not recorded, whose buffer is empty.
struct WarpHeader {
  uint32_t written = 0;
  uint16_t sm = 0;
  uint64_t begin_ns = 0;

  // A length that records have, and a time that 63 bits hold, with room for what follows.
  bool IsValid() const { return written >= 16 && written % 4 == 0 && begin_ns >> 62 == 0; }
};
std::optional<WarpHeader> ReadWarpHeader(UntrustedBytes buffer);

// Appends what the warp recorded, but its end, to `records`, with times that never fall.
std::optional<WarpBuffer> ReadWarpBuffer(UntrustedBytes buffer, const RecordForms& forms,
                                         std::vector<WarpRecord>& records);

}  // namespace iket::foreign
