#include "patch/foreign.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/bytes.h"

namespace iket::patch {
namespace {

constexpr std::string_view kEventPrefix = "__iket_evt_decl_";
constexpr std::string_view kRangePrefix = "__iket_range_decl_";
constexpr std::string_view kStringPrefix = "__iket_string_decl_";
constexpr std::string_view kStringSuffix = "_str";
constexpr std::string_view kMetaName = "__iket_meta_info";
constexpr uint32_t kMagic = 0xbabef19d;
constexpr uint32_t kMetaSize = 48, kEventSize = 60, kRangeSize = 72;
constexpr uint64_t kNameCapacity = 32;
// From the first 64 bits on, what is stored behind time and id has 8 bytes.
constexpr uint8_t kPayloadI64 = 7, kPayloadF32 = 13, kPayloadF64 = 14, kPayloadU64 = 16;

// Names of the string table, by the key that stands where the name would: "h" and 16 digits.
using Strings = std::map<std::string, std::string, std::less<>>;

// What a symbol names, of at most `size` bytes.
std::optional<UntrustedBytes> Contents(const cubin::Image& image, const cubin::Symbol& symbol,
                                       uint64_t size) {
  if (!symbol.has_section) return std::nullopt;
  return UntrustedBytes(image.sections()[symbol.section].data).Slice(symbol.value, size);
}

// Zero-padded, and full if it has no room for a zero.
std::string InlineName(UntrustedBytes declaration, uint64_t offset) {
  const char* const name = reinterpret_cast<const char*>(declaration.data()) + offset;
  return {name, strnlen(name, kNameCapacity)};
}

// "__iket_string_decl_evt_h0123456789abcdef_str" holds the name of "h0123456789abcdef".
Strings ReadStrings(const cubin::Image& image) {
  Strings strings;
  for (const cubin::Symbol& symbol : image.symbols()) {
    std::string_view name = symbol.name;
    if (!name.starts_with(kStringPrefix) || !name.ends_with(kStringSuffix)) continue;
    name.remove_suffix(kStringSuffix.size());
    const auto bytes = Contents(image, symbol, symbol.size);
    const size_t key = name.rfind('_');
    if (!bytes || key == name.npos) continue;
    const char* const text = reinterpret_cast<const char*>(bytes->data());
    strings.emplace(name.substr(key + 1), std::string(text, strnlen(text, bytes->size())));
  }
  return strings;
}

std::string NameOf(UntrustedBytes declaration, uint64_t offset, const Strings& strings) {
  std::string name = InlineName(declaration, offset);
  const auto whole = strings.find(name);
  return whole != strings.end() ? whole->second : name;
}

std::optional<ForeignEvent> ParseEvent(UntrustedBytes bytes, const Strings& strings) {
  if (bytes.Read<uint32_t>(0) != kEventSize) return std::nullopt;
  const uint32_t payload = *bytes.Read<uint32_t>(12);
  const uint32_t position = *bytes.Read<uint32_t>(16);
  const bool is_position = position <= static_cast<uint32_t>(ForeignPosition::kRangeStartEnd) ||
                           position == static_cast<uint32_t>(ForeignPosition::kInternal);
  if (payload > 0xff || !is_position) return std::nullopt;
  return ForeignEvent{.id = *bytes.Read<uint32_t>(4),
                      .method = static_cast<ForeignMethod>(*bytes.Read<uint32_t>(8)),
                      .payload = static_cast<uint8_t>(payload),
                      .position = static_cast<ForeignPosition>(position),
                      .range = *bytes.Read<uint32_t>(20),
                      .name = NameOf(bytes, 28, strings)};
}

std::optional<ForeignRange> ParseRange(UntrustedBytes bytes, const Strings& strings) {
  if (bytes.Read<uint32_t>(0) != kRangeSize) return std::nullopt;
  return ForeignRange{.id = *bytes.Read<uint32_t>(8),
                      .type = *bytes.Read<uint32_t>(16),
                      .colour = *bytes.Read<uint32_t>(12),
                      .name = NameOf(bytes, 36, strings)};
}

std::optional<ForeignMeta> ParseMeta(UntrustedBytes bytes) {
  if (bytes.Read<uint32_t>(0) != kMetaSize || bytes.Read<uint32_t>(24) != kMagic) {
    return std::nullopt;
  }
  return ForeignMeta{.major = *bytes.Read<uint32_t>(4),
                     .minor = *bytes.Read<uint32_t>(8),
                     .max_event_id = *bytes.Read<uint32_t>(12)};
}

bool IsKnownPayload(uint8_t payload) {
  return payload <= kPayloadI64 || (payload >= kPayloadF32 && payload <= kPayloadU64);
}

// Why the event cannot be recorded, or nothing.
std::string Refusal(const ForeignEvent& event) {
  const auto say = [&](std::string_view why) {
    return fmt::format("event \"{}\" (id {}) {}", event.name, event.id, why);
  };
  switch (event.method) {
    case ForeignMethod::kNativeDump:
      if (event.id > kForeignPop) {
        return say(
            "does not fit the 5 bits that NativeDump has for it: rebuild with at most 30 "
            "names, or with a front end that changes to ExtendedNativeDump");
      }
      break;
    case ForeignMethod::kPmTrig5:
    case ForeignMethod::kPmTrig6:
    case ForeignMethod::kExtendedNativeDump:
      break;
    case ForeignMethod::kUTraceEvent:
      return say("is recorded by UTraceEvent, of which only NVIDIA's tool knows how it works");
    default:
      return say(fmt::format("has method {}, which this version does not know",
                             static_cast<uint32_t>(event.method)));
  }
  if (event.id == 0 || event.id == kForeignPop || event.id > kMostForeignId) {
    return say("has an id that no event may have");
  }
  if (!IsKnownPayload(event.payload)) {
    return say(
        fmt::format("has a payload of type {}, which this version does not know", event.payload));
  }
  return {};
}

std::string RefusalOfAll(const std::vector<ForeignEvent>& events) {
  for (const ForeignEvent& event : events) {
    if (std::string why = Refusal(event); !why.empty()) return why;
    if (event.method != events.front().method) {
      return fmt::format("events \"{}\" and \"{}\" have different methods, {} and {}",
                         events.front().name, event.name, MethodName(events.front().method),
                         MethodName(event.method));
    }
  }
  for (size_t i = 1; i < events.size(); ++i) {
    if (events[i].id != events[i - 1].id) continue;
    return fmt::format("events \"{}\" and \"{}\" have the same id {}", events[i - 1].name,
                       events[i].name, events[i].id);
  }
  return {};
}

std::string Word(uint32_t value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

// As the header makes the ids of its own (docs/placeholder.md).
uint32_t Hash(const Declaration& declaration) {
  uint32_t hash = 2166136261u;
  const auto add = [&hash](std::string_view bytes) {
    for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  };
  const char head[] = {static_cast<char>(declaration.kind), static_cast<char>(declaration.payload)};
  add({head, sizeof head});
  add(declaration.name);
  for (const Attribute& attribute : declaration.attributes) add(attribute.text);
  hash &= 0x7fffffffu;
  return hash == 0 ? 1 : hash;
}

EventKind KindOf(ForeignPosition position) {
  switch (position) {
    case ForeignPosition::kRangeStart:
      return EventKind::kPush;
    case ForeignPosition::kRangeEnd:
      return EventKind::kPop;
    case ForeignPosition::kRangeStartEnd:
      return EventKind::kTokenEither;
    case ForeignPosition::kNotInRange:
    case ForeignPosition::kRangeInternal:
    case ForeignPosition::kInternal:
      return EventKind::kMark;
  }
  return EventKind::kMark;
}

Declaration DeclarationOf(const ForeignEvent& event, const ForeignMarks& marks) {
  Declaration declaration{
      .kind = KindOf(event.position), .payload = event.payload, .name = event.name};
  constexpr uint32_t kAutomatic = 0xffffffff;
  const auto range = std::ranges::find(marks.ranges, event.range, &ForeignRange::id);
  if (range != marks.ranges.end() && range->colour != kAutomatic) {
    declaration.attributes.push_back(
        {.what = AttributeKind::kColour, .text = Word(range->colour & 0xffffff)});
  }
  declaration.attributes.push_back({.what = AttributeKind::kForeignEvent, .text = Word(event.id)});
  if (event.range != 0) {
    declaration.attributes.push_back(
        {.what = AttributeKind::kForeignRange, .text = Word(event.range)});
  }
  declaration.id = Hash(declaration);
  return declaration;
}

}  // namespace

std::string MethodName(ForeignMethod method) {
  switch (method) {
    case ForeignMethod::kPmTrig5:
      return "PMTRIG5";
    case ForeignMethod::kPmTrig6:
      return "PMTRIG6";
    case ForeignMethod::kNativeDump:
      return "NativeDump";
    case ForeignMethod::kUTraceEvent:
      return "UTraceEvent";
    case ForeignMethod::kExtendedNativeDump:
      return "ExtendedNativeDump";
  }
  return fmt::format("method {}", static_cast<uint32_t>(method));
}

uint32_t ForeignEvent::payload_bytes() const {
  if (payload == kPayloadNone) return 0;
  const bool is_wide = payload == kPayloadI64 || (payload >= kPayloadF64 && payload <= kPayloadU64);
  return is_wide ? 8 : 4;
}

const ForeignEvent* ForeignMarks::Find(uint32_t id) const {
  const auto found = std::ranges::lower_bound(events, id, {}, &ForeignEvent::id);
  return found != events.end() && found->id == id ? &*found : nullptr;
}

ForeignMethod ForeignMarks::method() const {
  return events.empty() ? ForeignMethod::kNativeDump : events.front().method;
}

ForeignMarks FindForeignMarks(const cubin::Image& image, const NamedTriggers& triggers) {
  ForeignMarks marks;
  const Strings strings = ReadStrings(image);
  for (const cubin::Symbol& symbol : image.symbols()) {
    if (symbol.name.starts_with(kEventPrefix)) {
      const auto bytes = Contents(image, symbol, kEventSize);
      auto event = bytes ? ParseEvent(*bytes, strings) : std::nullopt;
      if (event) marks.events.push_back(std::move(*event));
      marks.malformed += event ? 0 : 1;
    } else if (symbol.name.starts_with(kRangePrefix)) {
      const auto bytes = Contents(image, symbol, kRangeSize);
      auto range = bytes ? ParseRange(*bytes, strings) : std::nullopt;
      if (range) marks.ranges.push_back(std::move(*range));
      marks.malformed += range ? 0 : 1;
    } else if (symbol.name == kMetaName) {
      const auto bytes = Contents(image, symbol, kMetaSize);
      marks.meta = bytes ? ParseMeta(*bytes) : std::nullopt;
      marks.malformed += marks.meta ? 0 : 1;
    }
  }
  if (marks.events.empty()) {
    for (const auto& [mask, name] : triggers) {
      ForeignEvent& event = marks.events.emplace_back();
      event.id = mask;
      event.method = ForeignMethod::kPmTrig5;
      event.name = name;
    }
  }
  // Units that were linked together each declare what they use.
  std::ranges::sort(marks.events);
  const auto repeated = std::ranges::unique(marks.events);
  marks.events.erase(repeated.begin(), repeated.end());
  std::ranges::sort(marks.ranges, {}, [](const ForeignRange& r) { return std::tie(r.id, r.name); });
  marks.refusal = RefusalOfAll(marks.events);
  return marks;
}

std::vector<Declaration> DeclarationsOf(const ForeignMarks& marks) {
  std::vector<Declaration> declarations;
  for (const ForeignEvent& event : marks.events) {
    declarations.push_back(DeclarationOf(event, marks));
  }
  if (!marks.events.empty() && !IsBare(marks.method())) {
    ForeignEvent pop;
    pop.id = kForeignPop;
    pop.position = ForeignPosition::kRangeEnd;
    declarations.push_back(DeclarationOf(pop, marks));
  }
  return declarations;
}

std::map<uint32_t, uint32_t> RecordedIds(const std::vector<Declaration>& declarations) {
  std::map<uint32_t, uint32_t> ids;
  for (const Declaration& declaration : declarations) {
    for (const Attribute& attribute : declaration.attributes) {
      uint32_t id = 0;
      if (attribute.what != AttributeKind::kForeignEvent || attribute.text.size() != sizeof id) {
        continue;
      }
      std::memcpy(&id, attribute.text.data(), sizeof id);
      ids.emplace(id, declaration.id);
    }
  }
  return ids;
}

}  // namespace iket::patch
