// Events with several values: what their records hold is found again, whatever stands between them
// or is missing. And the rows, lanes and groups, in which ranges nest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using capture::AttributeKind;
using Kind = capture::EventKind;
using Type = capture::PayloadType;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kLow = 0xffffffff;

constexpr bool IsWideType(Type type) {
  return type == Type::kI64 || type == Type::kF64 || type == Type::kU64 || type == Type::kPointer;
}

class Values : public ::testing::Test {
 protected:
  void Attribute(uint32_t event, AttributeKind what, std::string text, Type type = Type::kNone) {
    auto& attributes = gpu_.facts().attributes;
    attributes.push_back({.event = event,
                          .position = static_cast<uint32_t>(attributes.size()),
                          .what = what,
                          .number = static_cast<uint8_t>(type),
                          .text = std::move(text)});
    std::ranges::stable_sort(attributes, {}, &capture::Attribute::event);
  }

  // An event with these values, called v0, v1 and so on.
  uint32_t Declare(Kind kind, const std::vector<Type>& types, bool inverted = false,
                   std::string name = {}) {
    if (name.empty()) name = "e" + std::to_string(declared_++);
    const auto payload =
        static_cast<uint8_t>(types[0]) | (inverted ? capture::kInvertedPayload : 0);
    const uint32_t id = gpu_.Declare(kind, name, static_cast<Type>(payload));
    Attribute(id, AttributeKind::kValueName, "v0");
    for (size_t i = 1; i < types.size(); ++i) {
      Attribute(id, AttributeKind::kValue, "v" + std::to_string(i), types[i]);
    }
    return id;
  }

  SyntheticGpu::WarpId Begin() {
    const uint32_t kernel = gpu_.AddKernel("k");
    const uint32_t grid = gpu_.Launch(kernel, {1, 1, 1}, {32, 1, 1});
    gpu_.Pass(100);
    return gpu_.Begin(grid, 0, 0, 0, 0);
  }

  // The event as the header writes it: words in order, of the end of a token the token second.
  void Record(SyntheticGpu::WarpId warp, uint32_t id, std::vector<uint32_t> words, bool inverted) {
    if (words.size() % 2 == 1) words.push_back(0xdead);  // left over
    for (uint32_t& word : words) word = inverted ? ~word : word;
    const auto pair = [&](size_t i) { return uint64_t{words[i + 1]} << 32 | words[i]; };
    gpu_.Event(warp, id, pair(0));
    for (size_t i = 2; i < words.size(); i += 2) {
      gpu_.More(warp, static_cast<uint32_t>(i / 2), pair(i));
    }
  }

  Model Decode() {
    Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    return std::move(decoder.Finish().value());
  }

  // (index, value) of an event, beside its payload.
  static std::vector<std::pair<int, uint64_t>> MoreOf(const Model& model, uint32_t event) {
    std::vector<std::pair<int, uint64_t>> more;
    const auto [first, last] = model.values.Of(event);
    for (size_t i = first; i < last; ++i) {
      if (model.values.index[i] == trace::Values::kPayload) continue;
      more.emplace_back(model.values.index[i], model.values.value[i]);
    }
    return more;
  }

  int declared_ = 0;
  SyntheticGpu gpu_{{.ring_bytes = 1 << 16}};
};

TEST_F(Values, FourInTwoRecords) {
  const uint32_t id = Declare(Kind::kMark, {Type::kI32, Type::kU32, Type::kF32, Type::kU32});
  const auto warp = Begin();
  gpu_.Pass(10);
  Record(warp, id, {1, 2, 0x3f800000, 4}, false);
  gpu_.Pass(10);
  gpu_.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.events.size(), 1u);
  EXPECT_EQ(model.events.payload[0], 1u);
  EXPECT_THAT(MoreOf(model, 0), ElementsAre(Pair(0, 2), Pair(1, 0x3f800000), Pair(2, 4)));
  const Declaration& declared = model.declarations[model.events.declaration[0]];
  EXPECT_EQ(model.String(declared.payload_name), "v0");
  ASSERT_EQ(declared.more.size(), 3u);
  EXPECT_EQ(model.String(declared.more[1].name), "v2");
  EXPECT_EQ(declared.more[1].type, PayloadType::kF32);
  EXPECT_FALSE(AnyFault(model.counters));
}

// Any types in any order, at every kind of event, as they are and inverted, against the values that
// went in.
TEST_F(Values, OfAnyTypes) {
  constexpr Type kTypes[] = {Type::kI32, Type::kU32,  Type::kI64, Type::kF64, Type::kU64,
                             Type::kF32, Type::kBool, Type::kI8,  Type::kU16, Type::kPointer};
  std::mt19937_64 random(7);
  struct Given {
    uint64_t payload;
    std::vector<std::pair<int, uint64_t>> more;
  };
  std::vector<Given> given;
  const auto warp = Begin();
  for (int round = 0; round < 200; ++round) {
    std::vector<Type> types(1 + random() % ring::kMostValues);
    for (Type& type : types) type = kTypes[random() % std::size(kTypes)];
    const bool inverted = random() % 2 == 0, is_end = random() % 3 == 0;
    const uint32_t id = Declare(is_end ? Kind::kTokenEnd : Kind::kMark, types, inverted);
    gpu_.Pass(20);
    std::vector<uint32_t> words;
    Given& now = given.emplace_back();
    for (size_t i = 0; i < types.size(); ++i) {
      uint64_t bits = random();
      uint64_t read = IsWideType(types[i]) ? bits : bits & kLow;
      if (types[i] == Type::kI8) read = static_cast<uint32_t>(static_cast<int8_t>(bits));
      if (types[i] == Type::kBool) read = bits & 0xff;
      if (types[i] == Type::kU16) read = bits & 0xffff;
      words.push_back(static_cast<uint32_t>(bits));
      if (is_end && words.size() == 1) words.push_back(0);  // the token of a sentinel
      if (IsWideType(types[i])) words.push_back(static_cast<uint32_t>(bits >> 32));
      if (i == 0) {
        now.payload = read;
      } else {
        now.more.emplace_back(static_cast<int>(i - 1), read);
      }
    }
    Record(warp, id, words, inverted);
  }
  gpu_.Pass(10);
  gpu_.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.events.size(), given.size());
  for (uint32_t event = 0; event < given.size(); ++event) {
    EXPECT_EQ(model.events.payload[event], given[event].payload) << event;
    EXPECT_EQ(MoreOf(model, event), given[event].more) << event;
  }
  EXPECT_EQ(model.counters.values_missing + model.counters.values_orphan, 0u);
}

TEST_F(Values, OfLaneGroupsThatWriteInTurns) {
  const uint32_t id = Declare(Kind::kMark, {Type::kU32, Type::kU32, Type::kU32});
  const auto warp = Begin();
  gpu_.Pass(10);
  const auto first = static_cast<uint32_t>(gpu_.Cycles(0));
  gpu_.Event(warp, id, uint64_t{2} << 32 | 1);
  gpu_.Pass(10);
  const auto second = static_cast<uint32_t>(gpu_.Cycles(0));
  gpu_.Event(warp, id, uint64_t{12} << 32 | 11);
  gpu_.More(warp, 1, 3, first);
  gpu_.More(warp, 1, 13, second);
  gpu_.Pass(10);
  gpu_.Exit(warp);
  const Model model = Decode();
  EXPECT_THAT(MoreOf(model, 0), ElementsAre(Pair(0, 2), Pair(1, 3)));
  EXPECT_THAT(MoreOf(model, 1), ElementsAre(Pair(0, 12), Pair(1, 13)));
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST_F(Values, ThatAreLostAreCounted) {
  const uint32_t id = Declare(Kind::kMark, {Type::kU32, Type::kU32, Type::kU32});
  const uint32_t plain = gpu_.Declare(Kind::kMark, "plain");
  const auto warp = Begin();
  // The ring holds an even number of records, so that the oldest kept one is of the second kind.
  for (uint32_t i = 0; i < gpu_.records_per_ring(); ++i) {
    gpu_.Pass(10);
    Record(warp, id, {i, i, i}, false);
  }
  gpu_.Pass(10);
  gpu_.Event(warp, id, 1);
  gpu_.Pass(10);
  gpu_.Event(warp, plain);
  gpu_.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.counters.values_missing, 1u);
  EXPECT_EQ(model.counters.values_orphan, gpu_.records_per_ring() % 2);
  EXPECT_EQ(model.counters.suspect_rings, 0u);
  EXPECT_THAT(MoreOf(model, static_cast<uint32_t>(model.events.size() - 2)),
              ElementsAre(Pair(0, 0)));
}

// A record that says to be behind an event, and behind which nothing of it stands.
TEST_F(Values, OfNobodyAreCounted) {
  const uint32_t plain = gpu_.Declare(Kind::kMark, "plain");
  const auto warp = Begin();
  gpu_.Pass(10);
  gpu_.Event(warp, plain);
  gpu_.More(warp, 1, 3);            // behind an event without values
  gpu_.More(warp, 1, 3, 12345678);  // behind none
  gpu_.More(warp, 9, 3);            // no such index
  gpu_.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.counters.values_orphan, 2u);
  EXPECT_EQ(model.counters.unknown_records, 1u);
  EXPECT_EQ(model.values.size(), 0u);
}

TEST_F(Values, AWideTokenCloses) {
  const uint32_t begin = Declare(Kind::kTokenBegin, {Type::kU64, Type::kU32}, true, "t");
  const uint32_t end = Declare(Kind::kTokenEnd, {Type::kU64, Type::kU32}, true, "t");
  const auto warp = Begin();
  gpu_.Pass(10);
  const auto token = static_cast<uint32_t>(gpu_.Cycles(0));
  Record(warp, begin, {1, 2, 3}, true);
  gpu_.Pass(10);
  Record(warp, end, {4, token, 5, 6}, true);
  gpu_.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.ranges.size(), 1u);
  EXPECT_EQ(model.ranges.end_event[0], 1u);
  EXPECT_EQ(model.ranges.payload[0], uint64_t{2} << 32 | 1);
  EXPECT_EQ(model.events.payload[1], uint64_t{5} << 32 | 4);
  EXPECT_THAT(MoreOf(model, 0), ElementsAre(Pair(0, 3)));
  EXPECT_THAT(MoreOf(model, 1), ElementsAre(Pair(0, 6)));
}

// Half of its payload stands in the record that is missing: it has none.
TEST_F(Values, AWideTokenWithoutItsOtherRecordHasNoPayload) {
  const uint32_t begin = Declare(Kind::kTokenBegin, {Type::kI64}, true, "t");
  const uint32_t end = Declare(Kind::kTokenEnd, {Type::kI64}, true, "t");
  const auto warp = Begin();
  gpu_.Pass(10);
  const auto token = static_cast<uint32_t>(gpu_.Cycles(0));
  Record(warp, begin, {1, 2}, true);
  gpu_.Pass(10);
  gpu_.Event(warp, end, ~(uint64_t{token} << 32 | 4));
  gpu_.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.ranges.end_event[0], 1u);
  EXPECT_TRUE(model.HasPayload(0));
  EXPECT_FALSE(model.HasPayload(1));
  EXPECT_EQ(model.counters.values_missing, 1u);
}

// A declaration that the header does not make: values, and no payload.
TEST_F(Values, WithoutAPayload) {
  const uint32_t id = gpu_.Declare(Kind::kMark, "bare");
  Attribute(id, AttributeKind::kValue, "b", Type::kU32);
  Attribute(id, AttributeKind::kValue, "c", Type::kU64);
  const auto warp = Begin();
  gpu_.Pass(10);
  Record(warp, id, {7, 8, 9}, false);
  gpu_.Exit(warp);
  EXPECT_THAT(MoreOf(Decode(), 0), ElementsAre(Pair(0, 7), Pair(1, uint64_t{9} << 32 | 8)));
}

// However many rows there are, ranges of one name in two of them are two.
TEST_F(Values, ManyRowsAreApart) {
  const auto warp = Begin();
  std::vector<uint32_t> ends;
  for (int lane = 0; lane < 300; ++lane) {
    const auto declare = [&](Kind kind, const char* name) {
      const uint32_t id = gpu_.Declare(kind, name + std::to_string(lane));
      std::ranges::find(gpu_.facts().declarations, id, &capture::Declaration::event)->name = "load";
      Attribute(id, AttributeKind::kLane, "lane" + std::to_string(lane));
      return id;
    };
    gpu_.Pass(10);
    gpu_.Event(warp, declare(Kind::kRangeBegin, "begin"));
    ends.push_back(declare(Kind::kRangeEnd, "end"));
  }
  for (const uint32_t end : ends) {
    gpu_.Pass(10);
    gpu_.Event(warp, end);
  }
  gpu_.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.ranges.size(), 300u);
  for (uint32_t range = 0; range < 300; ++range) {
    EXPECT_EQ(model.ranges.end_event[range], 300 + range);
    EXPECT_EQ(model.ranges.flags[range], 0);
  }
}

TEST_F(Values, RangesNestInTheirRow) {
  const uint32_t main_begin = gpu_.Declare(Kind::kRangeBegin, "main");
  const uint32_t main_end = gpu_.Declare(Kind::kRangeEnd, "main");
  const uint32_t lane_begin = gpu_.Declare(Kind::kRangeBegin, "copy");
  const uint32_t lane_end = gpu_.Declare(Kind::kRangeEnd, "copy");
  for (const uint32_t event : {lane_begin, lane_end}) {
    Attribute(event, AttributeKind::kLane, "tma");
    Attribute(event, AttributeKind::kGroup, "producer");
  }
  const auto warp = Begin();
  for (const uint32_t event :
       {main_begin, lane_begin, main_end, main_begin, lane_end, lane_begin}) {
    gpu_.Pass(10);
    gpu_.Event(warp, event);
  }
  gpu_.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.ranges.size(), 4u);
  EXPECT_THAT(model.ranges.depth, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(model.ranges.end_event, ElementsAre(2u, 4u, kNoRow, kNoRow));
  for (const uint8_t flags : model.ranges.flags) EXPECT_EQ(flags & kRangeCrossed, 0);
  EXPECT_EQ(model.counters.unclosed_ranges, 2u);
  const Declaration& copy = model.declarations[model.ranges.declaration[1]];
  EXPECT_EQ(model.String(copy.lane), "tma");
  EXPECT_EQ(model.String(copy.group), "producer");
}

// A pop has no name, and so no row: a push that says to be in one is in the warp's own.
TEST_F(Values, APushHasNoRow) {
  const uint32_t push = gpu_.Declare(Kind::kPush, "load");
  const uint32_t pop = gpu_.Declare(Kind::kPop, "");
  Attribute(push, AttributeKind::kLane, "tma");
  const auto warp = Begin();
  gpu_.Pass(10);
  gpu_.Event(warp, push);
  gpu_.Pass(10);
  gpu_.Event(warp, pop);
  gpu_.Exit(warp);
  const Model model = Decode();
  EXPECT_THAT(model.ranges.end_event, ElementsAre(1u));
  EXPECT_THAT(model.unmatched_ends, IsEmpty());
}

// A warp whose SM changes its speed, once and again: between its begin and its end only pairs of
// the clocks on the way tell where an event was.
TEST_F(Values, PairsOnTheWayPlaceWhatALongWarpDoes) {
  for (const bool with_pairs : {false, true}) {
    SCOPED_TRACE(with_pairs);
    gpu_ = SyntheticGpu({.ring_bytes = 1 << 16});
    const uint32_t sync = gpu_.Declare(Kind::kSync, "sync", Type::kU32);
    const uint32_t mark = gpu_.Declare(Kind::kMark, "mark");
    const auto warp = Begin();
    std::vector<double> truth;
    const double begin_ns = gpu_.now_ns();
    for (int i = 0; i < 1000; ++i) {
      gpu_.SetFrequency(i < 300 ? 1.98 : i < 600 ? 1.2 : 1.6);
      gpu_.Pass(10'000);
      if (with_pairs && i % 10 == 0) gpu_.Event(warp, sync, gpu_.timer_ns());
      gpu_.Event(warp, mark);
      truth.push_back(gpu_.now_ns() - begin_ns);
    }
    gpu_.Exit(warp);
    const Model model = Decode();
    double worst = 0;
    size_t next = 0;
    for (uint32_t event = 0; event < model.events.size(); ++event) {
      if (model.DeclarationName(model.events.declaration[event]) != "mark") continue;
      const double ns = model.NsOfWarp(0, model.events.cycles[event]) - model.warps.begin_ns[0];
      worst = std::max(worst, std::abs(ns - truth[next++]));
    }
    EXPECT_EQ(next, truth.size());
    if (with_pairs) {
      EXPECT_LT(worst, 30'000);  // where the speed changes, between two pairs of 100 us
    } else {
      EXPECT_GT(worst, 500'000);
    }
  }
}

// In a silence in which %clock came around unseen its pairs say nothing of what is behind it, and
// must not move what is before.
TEST_F(Values, PairsBehindASilenceMoveNothingBeforeIt) {
  std::array<double, 2> begin_of_range{}, warp_end{};
  for (const bool with_pairs : {false, true}) {
    gpu_ = SyntheticGpu({.ring_bytes = 1 << 16});
    const uint32_t sync = gpu_.Declare(with_pairs ? Kind::kSync : Kind::kMark, "sync", Type::kU32);
    const uint32_t open = gpu_.Declare(Kind::kRangeBegin, "silence");
    const uint32_t close = gpu_.Declare(Kind::kRangeEnd, "silence");
    const auto warp = Begin();
    const auto pairs = [&] {
      for (int i = 0; i < 25; ++i) {
        gpu_.Pass(1'000'000);
        gpu_.Event(warp, sync, gpu_.timer_ns());
      }
    };
    pairs();
    gpu_.Event(warp, open);
    gpu_.Pass(2.5e9);
    gpu_.Event(warp, close);
    pairs();
    gpu_.Exit(warp);
    const Model model = Decode();
    ASSERT_EQ(model.ranges.size(), 1u);
    begin_of_range[with_pairs] = model.NsOfWarp(0, model.ranges.begin_cycles[0]);
    warp_end[with_pairs] = model.warps.end_ns[0];
  }
  EXPECT_NEAR(begin_of_range[0], begin_of_range[1], 1000);
  EXPECT_NEAR(warp_end[0], warp_end[1], 1000);
}

}  // namespace
}  // namespace iket::trace
