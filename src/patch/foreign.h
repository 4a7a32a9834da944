// foreign.h: the events that another tool declares in an image.
//
// NVIDIA's IKET front end (CuTe DSL), TVM, TileLang, cuda-oxide and programs that write it by hand
// put byte arrays into the cubin (docs/design/compat.md): `__iket_meta_info`, one
// `__iket_evt_decl_*_attrs` an event, one `__iket_range_decl_*_attrs` a range, and of names beyond
// 32 bytes `__iket_string_decl_*_str`. They are read here, in all the variants that are known:
// range ids by FNV-1a or CRC-32, a count where the minor version stands, names with or without
// their NUL.
//
// The bytes are untrusted: what is not a declaration is counted in `malformed`. What is one, but of
// an event that cannot be recorded, makes `refusal`: then no kernel of the image is patched for it,
// since a site could be any event's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cubin/image.h"
#include "patch/declaration.h"

namespace iket::patch {

// How sites record, by the numbers of the metadata.
enum class ForeignMethod : uint32_t {
  kPmTrig5 = 1,     // a bare PMTRIG whose mask is the event
  kPmTrig6 = 2,     // the same
  kNativeDump = 3,  // {timer | event id} stored, then PMTRIG of the id; at most 31 ids
  kUTraceEvent = 4,
  kExtendedNativeDump = 5,  // {timer, event id} stored, then PMTRIG of the id
};
std::string MethodName(ForeignMethod method);
// True if a site is its PMTRIG and nothing else.
constexpr bool IsBare(ForeignMethod method) {
  return method == ForeignMethod::kPmTrig5 || method == ForeignMethod::kPmTrig6;
}

// The id of the end of every pushed range.
inline constexpr uint32_t kForeignPop = 31;
inline constexpr uint32_t kMostForeignId = 4095;

enum class ForeignPosition : uint32_t {
  kNotInRange = 0,
  kRangeStart = 1,
  kRangeEnd = 2,
  kRangeInternal = 3,
  kRangeStartEnd = 4,  // of a token: one id at both ends
  kInternal = 8,       // what newer versions have for kRangeInternal
};

struct ForeignEvent {
  uint32_t id = 0;
  ForeignMethod method = ForeignMethod::kNativeDump;
  uint8_t payload = kPayloadNone;  // the numbers are those of declarations
  ForeignPosition position = ForeignPosition::kNotInRange;
  uint32_t range = 0;
  std::string name;

  // Bytes that a site stores behind time and id: 0, 4 or 8.
  uint32_t payload_bytes() const;

  friend auto operator<=>(const ForeignEvent&, const ForeignEvent&) = default;
};

struct ForeignRange {
  uint32_t id = 0;
  uint32_t type = 0;  // 1 of tokens, 2 pushed
  uint32_t colour = 0xffffffff;
  std::string name;
};

// `__iket_meta_info`, as far as anything depends on it.
struct ForeignMeta {
  uint32_t major = 0, minor = 0;
  uint32_t max_event_id = 0;
};

struct ForeignMarks {
  std::vector<ForeignEvent> events;  // by id; without the pop, which nothing declares
  std::vector<ForeignRange> ranges;  // by id
  std::optional<ForeignMeta> meta;
  uint32_t malformed = 0;  // arrays of a size or with contents that none of these has
  std::string refusal;     // why none of it can be recorded; empty if it can

  bool any() const { return !events.empty() || malformed > 0; }
  // Null if nothing declares the id.
  const ForeignEvent* Find(uint32_t id) const;
  ForeignMethod method() const;  // of the first; that of all, unless `refusal` says otherwise
};

// Bare PMTRIG instructions that a user gives names: by mask.
using NamedTriggers = std::map<uint32_t, std::string>;

// What an image declares, and the triggers that it does not.
ForeignMarks FindForeignMarks(const cubin::Image& image, const NamedTriggers& triggers = {});

// The same as declarations of our own, by which records of the patched sites are read: with the
// metadata's ids as attributes, and the pop, which no metadata declares.
std::vector<Declaration> DeclarationsOf(const ForeignMarks& marks);
// The id that a patched site records for an event of the metadata; 0 if nothing declares it.
std::map<uint32_t, uint32_t> RecordedIds(const std::vector<Declaration>& declarations);

}  // namespace iket::patch
