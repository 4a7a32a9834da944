// declarations.h: what an event id means, looked up once for each event.
//
// Ids are hashes of kind, payload type and name, so images agree on them; where one does not, the
// kernel's own image decides: it has a second table of what differs. A table is open addressing at
// half load: a look-up is a multiplication and, nearly always, one cache line.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/content.h"
#include "trace/model.h"
#include "trace/small_float.h"
#include "trace/strings.h"

namespace iket::trace {

// From the bits of a record to the payload of the model: widens 8 and 16 bits to 32, clears what a
// record carries over from an older lap.
struct PayloadRule {
  uint64_t mask = 0;      // bits that the record has
  uint64_t sign = 0;      // its sign bit, if it must be extended
  uint64_t keep = 0;      // bits that the model has
  SmallFloat small = {};  // of fewer than 32 bits: the model has a float
  // The high word of the record is a token, and stays where it is until ranges are paired.
  bool has_token = false;
  uint64_t flip = 0;  // all bits, where they are stored inverted

  uint64_t Apply(uint64_t bits) const {
    bits ^= flip;
    uint64_t value = (((bits & mask) ^ sign) - sign) & keep;
    if (small.exponent_bits != 0) value = small.ToFloat(static_cast<uint32_t>(value));
    return has_token ? (value & 0xffffffffu) | (bits >> 32 << 32) : value;
  }
};

// Where the values beside the payload stand among the words of a record and of those behind it:
// word 0 and 1 are the event's own.
struct ValueRule {
  uint8_t index = 0;  // as Values::index; kPayload of the end of a token, which has no room for it
  uint8_t low = 0;
  uint8_t high = 0;  // word; of 64-bit values
  bool is_wide = false;
  PayloadRule rule;
};

// An id of 31 bits -> a row of Model::declarations.
class IdTable {
 public:
  static constexpr uint32_t kMissing = 0;  // row 0 is the declaration of unknown ids

  explicit IdTable(size_t capacity);
  void Insert(uint32_t id, uint32_t row);  // at most `capacity` times; `id` is not 0
  uint32_t Find(uint32_t id) const {
    size_t at = Hash(id);
    while (slots_[at].id != id && slots_[at].id != 0) at = (at + 1) & mask_;
    return slots_[at].row;
  }

 private:
  struct Slot {
    uint32_t id = 0;  // 0: free; no event has this id
    uint32_t row = kMissing;
  };
  size_t Hash(uint32_t id) const { return (id * 0x9e3779b1u) >> shift_; }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  uint32_t shift_ = 0;
};

class Declarations {
 public:
  // Makes `rows` (Model::declarations) from what the capture declares; row 0 is for unknown ids.
  // Both are sorted by image, as capture::Capture has them.
  Declarations(std::span<const capture::Declaration> declared,
               std::span<const capture::Attribute> attributes, StringInterner& strings,
               std::vector<Declaration>& rows);

  // Looks ids up as one image sees them.
  class View {
   public:
    uint32_t Find(uint32_t id) const {
      const uint32_t row = own_ == nullptr ? IdTable::kMissing : own_->Find(id);
      return row != IdTable::kMissing ? row : shared_->Find(id);
    }

   private:
    friend class Declarations;
    View(const IdTable* shared, const IdTable* own) : shared_(shared), own_(own) {}
    const IdTable* shared_;
    const IdTable* own_;
  };
  // Any number will do: an image without declarations of its own has the shared ones.
  View OfImage(uint32_t image) const;

  const PayloadRule& Rule(uint32_t row) const { return rules_[row]; }
  // What is in records behind that of the event; empty for most.
  std::span<const ValueRule> MoreOf(uint32_t row) const { return more_[row]; }
  bool any_more() const { return any_more_; }

 private:
  struct OwnTable {
    uint32_t image;
    IdTable table;
  };
  IdTable shared_;
  std::vector<OwnTable> own_;  // by image
  std::vector<PayloadRule> rules_;
  std::vector<std::vector<ValueRule>> more_;
  bool any_more_ = false;
};

}  // namespace iket::trace
