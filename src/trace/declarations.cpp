#include "trace/declarations.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "base/bytes.h"
#include "capture/reader.h"

namespace iket::trace {
namespace {

EventKind KindOf(capture::EventKind kind) {
  switch (kind) {
    case capture::EventKind::kMark:
      return EventKind::kMark;
    case capture::EventKind::kPush:
      return EventKind::kPush;
    case capture::EventKind::kPop:
      return EventKind::kPop;
    case capture::EventKind::kRangeBegin:
      return EventKind::kRangeBegin;
    case capture::EventKind::kRangeEnd:
      return EventKind::kRangeEnd;
    case capture::EventKind::kTokenBegin:
      return EventKind::kTokenBegin;
    case capture::EventKind::kTokenEnd:
      return EventKind::kTokenEnd;
    case capture::EventKind::kFlowOut:
      return EventKind::kFlowOut;
    case capture::EventKind::kFlowIn:
      return EventKind::kFlowIn;
    case capture::EventKind::kSync:
      return EventKind::kSync;
    case capture::EventKind::kTokenEither:
      return EventKind::kTokenEither;
  }
  return EventKind::kUnknown;  // a kind of a later version
}

struct PayloadForm {
  PayloadType type;
  PayloadRule rule;

  bool is_wide() const { return (rule.mask >> 32) != 0; }
};

PayloadForm FormOf(capture::PayloadType type) {
  constexpr uint64_t kWord = 0xffffffffu;
  constexpr uint64_t kAll = ~uint64_t{0};
  switch (type) {
    case capture::PayloadType::kNone:
      return {PayloadType::kNone, {0, 0, 0}};
    case capture::PayloadType::kI8:
      return {PayloadType::kS32, {0xff, 0x80, kWord}};
    case capture::PayloadType::kU8:
      return {PayloadType::kU32, {0xff, 0, kWord}};
    case capture::PayloadType::kI16:
      return {PayloadType::kS32, {0xffff, 0x8000, kWord}};
    case capture::PayloadType::kU16:
      return {PayloadType::kU32, {0xffff, 0, kWord}};
    case capture::PayloadType::kI32:
      return {PayloadType::kS32, {kWord, 0, kWord}};
    case capture::PayloadType::kU32:
      return {PayloadType::kU32, {kWord, 0, kWord}};
    case capture::PayloadType::kF32:
      return {PayloadType::kF32, {kWord, 0, kWord}};
    case capture::PayloadType::kI64:
      return {PayloadType::kS64, {kAll, 0, kAll}};
    case capture::PayloadType::kF64:
      return {PayloadType::kF64, {kAll, 0, kAll}};
    case capture::PayloadType::kPointer:
    case capture::PayloadType::kU64:
      return {PayloadType::kU64, {kAll, 0, kAll}};
    case capture::PayloadType::kBool:
      return {PayloadType::kU32, {0xff, 0, kWord}};
    case capture::PayloadType::kF16:
      return {PayloadType::kF32, {0xffff, 0, kWord, kHalf}};
    case capture::PayloadType::kBf16:
      return {PayloadType::kF32, {0xffff, 0, kWord, kBfloat16}};
    case capture::PayloadType::kE4m3:
      return {PayloadType::kF32, {0xff, 0, kWord, kE4m3}};
    case capture::PayloadType::kE5m2:
      return {PayloadType::kF32, {0xff, 0, kWord, kE5m2}};
  }
  return {PayloadType::kU64, {kAll, 0, kAll}};  // a type of a later version: all bits, as they are
}

using Attributes = std::span<const capture::Attribute>;

PayloadForm FormOfValue(const capture::Attribute& attribute) {
  return FormOf(capture::TypeOf(static_cast<capture::PayloadType>(attribute.number)));
}

// Four bytes, little-endian; kNoRow where they are not.
uint32_t ForeignId(const capture::Attribute& attribute) {
  return UntrustedBytes(attribute.text.data(), attribute.text.size())
      .Read<uint32_t>(0)
      .value_or(kNoRow);
}

// What attributes say, to where it belongs. Those of a later version say nothing.
void Annotate(Attributes attributes, StringInterner& strings, Declaration& row) {
  for (const capture::Attribute& attribute : attributes) {
    const auto text = [&] { return strings.Intern(attribute.text); };
    switch (attribute.what) {
      case capture::AttributeKind::kValueName:
        row.payload_name = text();
        break;
      case capture::AttributeKind::kValue:
        if (row.more.size() + 1 == ring::kMostValues) break;
        row.more.push_back({text(), FormOfValue(attribute).type});
        break;
      case capture::AttributeKind::kCategory:
        row.category = text();
        break;
      case capture::AttributeKind::kLane:
        row.lane = text();
        break;
      case capture::AttributeKind::kGroup:
        row.group = text();
        break;
      case capture::AttributeKind::kForeignEvent:
        row.foreign_event = ForeignId(attribute);
        break;
      case capture::AttributeKind::kForeignRange:
        row.foreign_range = ForeignId(attribute);
        break;
      default:
        break;
    }
  }
}

// Words are given out in the order of the values; the end of a token has its token as word 1.
std::vector<ValueRule> RulesOfMore(Attributes attributes, const PayloadForm& payload,
                                   bool has_token) {
  std::vector<ValueRule> rules;
  uint8_t next = 0;
  const auto take = [&] {
    const uint8_t word = next++;
    if (has_token && next == 1) ++next;
    return word;
  };
  uint8_t more = 0;
  const auto add = [&](uint8_t index, const PayloadForm& form) {
    ValueRule rule{.index = index, .is_wide = form.is_wide(), .rule = form.rule};
    rule.rule.flip = payload.rule.flip;
    rule.low = take();
    if (rule.is_wide) rule.high = take();
    rules.push_back(rule);
  };
  if (payload.type != PayloadType::kNone) add(Values::kPayload, payload);
  for (const capture::Attribute& attribute : attributes) {
    if (attribute.what != capture::AttributeKind::kValue || more + 1 == ring::kMostValues) continue;
    add(more++, FormOfValue(attribute));
  }
  // The event's own record says all of a payload that fits into it.
  if (!rules.empty() && rules.front().index == Values::kPayload && rules.front().high < 2) {
    rules.erase(rules.begin());
  }
  return rules;
}

}  // namespace

IdTable::IdTable(size_t capacity) {
  const size_t size = std::bit_ceil(std::max<size_t>(2 * capacity, 16));
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 32 - static_cast<uint32_t>(std::countr_zero(size));
}

void IdTable::Insert(uint32_t id, uint32_t row) {
  size_t at = Hash(id);
  while (slots_[at].id != id && slots_[at].id != 0) at = (at + 1) & mask_;
  slots_[at] = {id, row};
}

Declarations::Declarations(std::span<const capture::Declaration> declared, Attributes attributes,
                           StringInterner& strings, std::vector<Declaration>& rows)
    : shared_(declared.size()) {
  rows.push_back({.kind = EventKind::kUnknown,
                  .payload = PayloadType::kU32,
                  .name = strings.Intern("(unknown id)")});
  rules_.push_back({});
  more_.emplace_back();

  struct Difference {
    uint32_t image, id, row;
  };
  std::vector<Difference> differences;
  std::map<std::tuple<uint32_t, EventKind, PayloadType, StringId, bool>, uint32_t> row_of_meaning;
  for (const capture::Declaration& one : declared) {
    PayloadForm form = FormOf(capture::TypeOf(one.payload));
    form.rule.flip = capture::IsInverted(one.payload) ? ~uint64_t{0} : 0;
    // A pair of clocks has the timer's low word, and nothing else.
    const bool is_sync = one.kind == capture::EventKind::kSync &&
                         capture::TypeOf(one.payload) == capture::PayloadType::kU32;
    const bool is_mark = one.kind == capture::EventKind::kSync && !is_sync;
    const Declaration row{
        .id = one.event,
        .kind = is_mark ? EventKind::kMark : KindOf(one.kind),
        // A timer's low word says nothing to anybody.
        .payload = is_sync ? PayloadType::kNone : form.type,
        .payload_declared =
            is_sync ? uint8_t{0} : static_cast<uint8_t>(capture::TypeOf(one.payload)),
        .name = strings.Intern(one.name),
        .file = strings.Intern(one.file),
        .line = one.line,
        .colour = one.colour,
        // Without its pops no push could be closed.
        .left_out = one.left_out && one.kind != capture::EventKind::kPop};
    if (row.id == 0 || row.id > ring::kEventIdMask) continue;  // no record can carry it
    const auto [known, is_new] = row_of_meaning.try_emplace(
        std::tuple(row.id, row.kind, row.payload, row.name, row.left_out),
        static_cast<uint32_t>(rows.size()));
    const uint32_t index = known->second;
    if (is_new) {
      rows.push_back(row);
      rules_.push_back(form.rule);
      rules_.back().has_token = row.kind == EventKind::kTokenEnd;
      const Attributes said = capture::AttributesOf(attributes, one);
      Annotate(said, strings, rows.back());
      // A pop has no name to find a row by.
      if (row.kind == EventKind::kPush || row.kind == EventKind::kPop) {
        rows.back().group = rows.back().lane = 0;
      }
      more_.push_back(RulesOfMore(said, form, rules_.back().has_token));
      any_more_ |= !more_.back().empty();
    }
    const uint32_t shared = shared_.Find(row.id);
    if (shared == IdTable::kMissing) {
      shared_.Insert(row.id, index);
    } else if (shared != index) {
      differences.push_back({one.image, row.id, index});
    }
  }

  std::ranges::stable_sort(differences, {}, &Difference::image);
  for (size_t begin = 0; begin < differences.size();) {
    size_t end = begin;
    while (end < differences.size() && differences[end].image == differences[begin].image) ++end;
    OwnTable own{differences[begin].image, IdTable(end - begin)};
    for (size_t i = begin; i < end; ++i) own.table.Insert(differences[i].id, differences[i].row);
    own_.push_back(std::move(own));
    begin = end;
  }
}

Declarations::View Declarations::OfImage(uint32_t image) const {
  const auto own = std::ranges::lower_bound(own_, image, {}, &OwnTable::image);
  return {&shared_, own != own_.end() && own->image == image ? &own->table : nullptr};
}

}  // namespace iket::trace
