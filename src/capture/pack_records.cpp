#include "capture/pack_records.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace iket::capture {
namespace {

using ring::Record;

// A tag byte: bits 6 and 7 say how word 1 is given, two bits each how many bytes clock, low and
// high have; or, from kShort on, that all was foretold but for a little of the clock, which is the
// rest.
enum Known : uint32_t { kForetold = 0, kBySlot = 1, kNew = 2 };
constexpr uint32_t kShort = 0xc0;
constexpr uint32_t kShortClocks = 64;
constexpr int kKnownShift = 6, kClockShift = 4, kLowShift = 2, kHighShift = 0;

constexpr std::array<uint8_t, 4> kBytesOfClass = {0, 1, 2, 4};
constexpr std::array<uint8_t, 4> kBytesOfKnown = {0, 1, 4, 0};
constexpr std::array<uint32_t, 4> kMaskOfClass = {0, 0xff, 0xffff, 0xffffffff};
constexpr size_t kMostBytes = 16;  // of the values of a record

constexpr uint32_t SlotOf(uint32_t tag) { return (tag * 0x9e3779b1u) >> 24; }

constexpr uint32_t HistoryWith(uint32_t history, uint32_t slot) {
  return (history << 3 ^ slot) & (RecordModel::kHistories - 1);
}

// Small for what is little above or below 0.
constexpr uint32_t Folded(uint32_t difference) {
  return difference << 1 ^ (0 - (difference >> 31));
}
constexpr uint32_t Unfolded(uint32_t folded) { return folded >> 1 ^ (0 - (folded & 1)); }

constexpr uint32_t ClassOf(uint32_t folded) {
  return uint32_t{folded != 0} + uint32_t{folded > 0xff} + uint32_t{folded > 0xffff};
}

constexpr bool IsIdentity(uint32_t tag) { return (tag & ring::kTagTypeMask) == ring::kTagIdentity; }

// The values of a record by its tag: how many bytes, and where they come from in its four words.
struct Layouts {
  std::array<uint8_t, 256> bytes{};
  alignas(16) std::array<std::array<uint8_t, 16>, 256> from{};
};
constexpr Layouts MakeLayouts() {
  Layouts layouts;
  for (uint32_t tag = 0; tag < 256; ++tag) {
    auto& from = layouts.from[tag];
    for (uint8_t& byte : from) byte = 0x80;  // stored, and overwritten by the next
    if (tag >= kShort) continue;
    const std::array<uint8_t, 4> sizes = {
        kBytesOfClass[tag >> kClockShift & 3], kBytesOfKnown[tag >> kKnownShift],
        kBytesOfClass[tag >> kLowShift & 3], kBytesOfClass[tag >> kHighShift & 3]};
    uint8_t at = 0;
    for (uint8_t word = 0; word < 4; ++word) {
      for (uint8_t i = 0; i < sizes[word]; ++i) from[at++] = static_cast<uint8_t>(4 * word + i);
    }
    layouts.bytes[tag] = at;
  }
  return layouts;
}
constexpr Layouts kLayouts = MakeLayouts();

void Store(std::byte* at, uint32_t value) { std::memcpy(at, &value, sizeof(value)); }

bool HasVectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx") != 0;
#else
  return false;
#endif
}

}  // namespace

RecordPacker::RecordPacker(std::byte* room, size_t records)
    : room_(room), tags_(room), values_(room + records), vectors_(HasVectors()) {}

void RecordPacker::AddRow(std::span<const Record> older, std::span<const Record> newer) {
  if (older.empty() && newer.empty()) return;
  const Record& first = older.empty() ? newer.front() : older.front();
  // Such that the clock of the first record is as it was foretold.
  model_.clock = first.clock - model_.slots[SlotOf(first.tag)].foretold[0];
  model_.history = 0;
  Store(values_, model_.clock);
  values_ += sizeof(uint32_t);
  Add(older);
  Add(newer);
}

void RecordPacker::Add(std::span<const Record> records) {
  if (vectors_) {
    AddVectors(records);
  } else {
    AddPortable(records);
  }
}

void RecordPacker::AddPortable(std::span<const Record> records) {
  RecordModel& model = model_;
  for (const Record& record : records) {
    const uint32_t slot = SlotOf(record.tag);
    RecordModel::Slot& seen = model.slots[slot];
    uint32_t& base = IsIdentity(record.tag) ? model.identity : model.clock;
    const uint32_t cycles = record.clock - base;
    base = record.clock;
    const bool known = seen.last[1] == record.tag;
    const bool foretold = known && model.next[model.history] == slot;
    model.next[model.history] = static_cast<uint8_t>(slot);
    model.history = HistoryWith(model.history, slot);
    const uint32_t clock = Folded(cycles - seen.foretold[0]);
    const uint32_t low = Folded(record.low - seen.foretold[2]);
    const uint32_t high = Folded(record.high - seen.foretold[3]);
    seen.foretold = {cycles, 0, 2 * record.low - seen.last[2], 2 * record.high - seen.last[3]};
    seen.last = {cycles, record.tag, record.low, record.high};

    uint32_t tag = (foretold ? kForetold
                    : known  ? kBySlot
                             : kNew)
                       << kKnownShift |
                   ClassOf(low) << kLowShift | ClassOf(high) << kHighShift;
    if (tag == 0 && clock < kShortClocks) {
      *tags_++ = static_cast<std::byte>(kShort | clock);
      continue;
    }
    tag |= ClassOf(clock) << kClockShift;
    *tags_++ = static_cast<std::byte>(tag);
    const std::array<uint32_t, 4> words = {clock, known ? slot : record.tag, low, high};
    for (size_t i = 0; i < kLayouts.bytes[tag]; ++i) {
      const uint8_t from = kLayouts.from[tag][i];
      *values_++ = static_cast<std::byte>(words[from / 4] >> 8 * (from % 4));
    }
  }
}

#if defined(__x86_64__)
// The same, the four words side by side, and without a branch on what the processor cannot foresee:
// how far a record is from what was foretold.
__attribute__((target("avx"))) void RecordPacker::AddVectors(std::span<const Record> records) {
  const __m128i payload = _mm_setr_epi32(0, 0, -1, -1);
  const __m128i zero = _mm_setzero_si128();
  const __m128i above_byte = _mm_set1_epi32(~0xff);
  const __m128i three = _mm_set1_epi8(3);
  RecordModel& model = model_;
  // Not in memory, where stores through bytes might change them.
  uint32_t base = model.clock, identity = model.identity, history = model.history;
  std::byte* tags = tags_;
  std::byte* values = values_;
  for (const Record& record : records) {
    const uint32_t slot = SlotOf(record.tag);
    RecordModel::Slot& seen = model.slots[slot];
    auto* const seen_last = reinterpret_cast<__m128i*>(seen.last.data());
    auto* const seen_foretold = reinterpret_cast<__m128i*>(seen.foretold.data());
    const bool is_identity = IsIdentity(record.tag);
    const uint32_t before = is_identity ? identity : base;
    identity = is_identity ? record.clock : identity;
    base = is_identity ? base : record.clock;
    uint32_t how = model.next[history] == slot ? kForetold : kBySlot;
    uint32_t name = slot;
    if (seen.last[1] != record.tag) [[unlikely]] {
      how = kNew;
      name = record.tag;
    }
    model.next[history] = static_cast<uint8_t>(slot);
    history = HistoryWith(history, slot);

    const __m128i words = _mm_sub_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&record)),
                                        _mm_cvtsi32_si128(static_cast<int>(before)));
    const __m128i last = _mm_load_si128(seen_last);
    const __m128i off = _mm_sub_epi32(words, _mm_load_si128(seen_foretold));
    _mm_store_si128(seen_last, words);
    _mm_store_si128(seen_foretold,
                    _mm_add_epi32(words, _mm_and_si128(_mm_sub_epi32(words, last), payload)));
    __m128i folded = _mm_xor_si128(_mm_add_epi32(off, off), _mm_srai_epi32(off, 31));

    // Of each word, -1 for each of three sizes that it does not reach.
    const __m128i short_of =
        _mm_add_epi32(_mm_add_epi32(_mm_cmpeq_epi32(folded, zero),
                                    _mm_cmpeq_epi32(_mm_and_si128(folded, above_byte), zero)),
                      _mm_cmpeq_epi32(_mm_srli_epi32(folded, 16), zero));
    const __m128i as_bytes = _mm_packs_epi16(_mm_packs_epi32(short_of, short_of), short_of);
    const auto classes = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_add_epi8(as_bytes, three)));
    // The classes of words 0, 2 and 3 to where a tag has them; word 1's falls out at the bottom.
    constexpr uint32_t kGather =
        1u << (24 + kClockShift) | 1u << (8 + kLowShift) | 1u << kHighShift;
    const uint32_t tag = how << kKnownShift | (classes * kGather) >> 24;
    const auto clock = static_cast<uint32_t>(_mm_cvtsi128_si32(folded));
    const uint32_t not_short = (tag & (0xff ^ 3u << kClockShift)) | clock / kShortClocks;
    // A conditional move: both compilers see to it, and nobody can foresee it.
    const uint32_t stored = not_short == 0 ? kShort | clock : tag;
    *tags++ = static_cast<std::byte>(stored);
    folded = _mm_insert_epi32(folded, static_cast<int>(name), 1);
    const auto* const from = reinterpret_cast<const __m128i*>(kLayouts.from[stored].data());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(values),
                     _mm_shuffle_epi8(folded, _mm_load_si128(from)));
    values += kLayouts.bytes[stored];
  }
  model.clock = base;
  model.identity = identity;
  model.history = history;
  tags_ = tags;
  values_ = values;
}
#else
void RecordPacker::AddVectors(std::span<const Record> records) { AddPortable(records); }
#endif

std::optional<RecordUnpacker> RecordUnpacker::Of(UntrustedBytes packed, size_t records) {
  if (records > packed.size()) return std::nullopt;
  return RecordUnpacker(packed.span().first(records), packed.span().subspan(records));
}

bool RecordUnpacker::TakeRow(std::span<Record> records) {
  if (records.empty()) return true;
  if (records.size() > tags_.size() || values_.size() < sizeof(uint32_t)) return false;
  RecordModel& model = model_;
  std::memcpy(&model.clock, values_.data(), sizeof(model.clock));
  model.history = 0;
  const std::byte* at = values_.data() + sizeof(model.clock);
  const std::byte* end = values_.data() + values_.size();
  // Values are read four bytes at a time, so the last of them from a copy with room behind it.
  std::array<std::byte, 2 * kMostBytes> tail;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto tag = static_cast<uint32_t>(tags_[i]);
    const size_t bytes = kLayouts.bytes[tag];
    const auto left = static_cast<size_t>(end - at);
    const std::byte* from = at;
    if (left < 2 * kMostBytes) {
      if (bytes > left) return false;
      tail.fill(std::byte{0});
      std::memcpy(tail.data(), at, bytes);
      from = tail.data();
    }
    at += bytes;
    const auto take = [&from](uint32_t mask, size_t size) {
      uint32_t value;
      std::memcpy(&value, from, sizeof(value));
      from += size;
      return value & mask;
    };
    const auto folded = [&](int shift) {
      const uint32_t size_class = tag >> shift & 3;
      return take(kMaskOfClass[size_class], kBytesOfClass[size_class]);
    };

    const bool is_short = tag >= kShort;
    uint32_t clock = tag - kShort, low = 0, high = 0;
    uint32_t slot = model.next[model.history];
    uint32_t word = 0;
    if (!is_short) {
      clock = folded(kClockShift);
      const uint32_t how = tag >> kKnownShift;
      if (how == kBySlot) slot = take(0xff, 1);
      if (how == kNew) {
        word = take(0xffffffff, 4);
        slot = SlotOf(word);
        model.slots[slot].last[1] = word;
      }
      low = folded(kLowShift);
      high = folded(kHighShift);
    }
    RecordModel::Slot& seen = model.slots[slot];
    word = seen.last[1];
    model.next[model.history] = static_cast<uint8_t>(slot);
    model.history = HistoryWith(model.history, slot);

    uint32_t& base = IsIdentity(word) ? model.identity : model.clock;
    const uint32_t cycles = seen.foretold[0] + Unfolded(clock);
    base += cycles;
    Record& record = records[i];
    record = {.clock = base,
              .tag = word,
              .low = seen.foretold[2] + Unfolded(low),
              .high = seen.foretold[3] + Unfolded(high)};
    seen.foretold = {cycles, 0, 2 * record.low - seen.last[2], 2 * record.high - seen.last[3]};
    seen.last = {cycles, word, record.low, record.high};
  }
  tags_ = tags_.subspan(records.size());
  values_ = values_.subspan(static_cast<size_t>(at - values_.data()));
  return true;
}

}  // namespace iket::capture
