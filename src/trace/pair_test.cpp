#include "trace/pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace iket::trace {
namespace {

using testing::ElementsAre;

// One warp, told in calls; a cycle passes before each of them.
class OneWarp {
 public:
  OneWarp& Push(const std::string& name) { return Add(EventKind::kPush, name); }
  OneWarp& Pop() { return Add(EventKind::kPop, ""); }
  OneWarp& Begin(const std::string& name) { return Add(EventKind::kRangeBegin, name); }
  OneWarp& End(const std::string& name) { return Add(EventKind::kRangeEnd, name); }
  // A token is the clock of its begin.
  OneWarp& Start(const std::string& name) { return Add(EventKind::kTokenBegin, name); }
  OneWarp& Finish(const std::string& name, uint32_t token, uint32_t payload = 0) {
    return Add(EventKind::kTokenEnd, name, uint64_t{token} << 32 | payload);
  }
  OneWarp& Mark(const std::string& name) { return Add(EventKind::kMark, name); }
  // What is left out, before the first of its events.
  OneWarp& Without(std::set<std::string> names) {
    left_out_ = std::move(names);
    return *this;
  }
  // Records are lost before the next event.
  OneWarp& Hole() {
    model_.holes.push_back(static_cast<uint32_t>(model_.events.cycles.size()));
    return *this;
  }
  // Of the next event, instead of one more than the last one's.
  OneWarp& At(uint64_t cycles) {
    next_ = cycles;
    return *this;
  }
  OneWarp& EndsAt(uint64_t cycles) {
    end_ = cycles;
    return *this;
  }
  OneWarp& Flags(uint8_t flags) {
    flags_ = flags;
    return *this;
  }

  Model Pair() {
    model_.warps.launch = {0};
    model_.warps.flags = {flags_};
    model_.warps.begin_cycles = {0};
    model_.warps.end_cycles = {end_ != 0 ? end_ : model_.events.cycles.size() + 1};
    model_.warps.first_event = {0};
    model_.warps.event_count = {static_cast<uint32_t>(model_.events.cycles.size())};
    PairRanges(model_);
    return model_;
  }

 private:
  OneWarp& Add(EventKind kind, const std::string& name, uint64_t payload = 0) {
    const auto [row, is_new] =
        rows_.try_emplace({kind, name}, static_cast<uint32_t>(model_.declarations.size()));
    if (is_new) {
      const auto [id, new_name] =
          names_.try_emplace(name, static_cast<StringId>(model_.strings.size()));
      if (new_name) model_.strings.push_back(name);
      model_.declarations.push_back(
          {.kind = kind,
           .name = id->second,
           .left_out = kind != EventKind::kPop && left_out_.contains(name)});
    }
    model_.events.declaration.push_back(row->second);
    model_.events.cycles.push_back(next_ != 0 ? next_ : model_.events.cycles.size() + 1);
    next_ = 0;
    model_.events.payload.push_back(payload);
    return *this;
  }

  Model model_;
  std::set<std::string> left_out_;
  uint64_t next_ = 0, end_ = 0;
  uint8_t flags_ = 0;
  std::map<std::pair<EventKind, std::string>, uint32_t> rows_;
  std::map<std::string, StringId> names_ = {{"", 0}};
};

// "name depth begin-end", and "!" for unclosed, "x" for crossed.
std::vector<std::string> Drawn(const Model& model) {
  std::vector<std::string> result;
  for (size_t i = 0; i < model.ranges.size(); ++i) {
    std::string text = model.DeclarationName(model.ranges.declaration[i]) + " " +
                       std::to_string(model.ranges.depth[i]) + " " +
                       std::to_string(model.ranges.begin_cycles[i]) + "-" +
                       std::to_string(model.ranges.end_cycles[i]);
    if ((model.ranges.flags[i] & kRangeUnclosed) != 0) text += "!";
    if ((model.ranges.flags[i] & kRangeCrossed) != 0) text += "x";
    if ((model.ranges.flags[i] & kRangeToken) != 0) text += "t";
    result.push_back(text);
  }
  return result;
}

TEST(Pair, PushesAndPopsNest) {
  const Model model = OneWarp().Push("a").Push("b").Pop().Push("c").Pop().Pop().Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-6", "b 1 2-3", "c 1 4-5"));
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(Pair, TokensNameWhatTheyClose) {
  const Model model = OneWarp()
                          .Start("a")
                          .Start("a")
                          .Finish("a", 1)
                          .Start("b")
                          .Finish("a", 2, 7)
                          .Finish("b", 4)
                          .Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-3t", "a 1 2-5t", "b 0 4-6t"));
  EXPECT_EQ(model.events.payload[4], 7u) << "without the token";
  EXPECT_EQ(model.events.payload[2], 0u);
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(Pair, TokensStandBesideTheStack) {
  const Model model =
      OneWarp().Push("p").Start("t").Pop().Begin("s").Finish("t", 2).End("s").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("p 0 1-3", "t 0 2-5t", "s 0 4-6"));
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(Pair, ATokenOfTheWrongNameClosesNothing) {
  const Model model = OneWarp().Start("a").Start("b").Finish("b", 1).EndsAt(9).Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-9!t", "b 0 2-9!t"));
  EXPECT_EQ(model.counters.unmatched_ends, 1u);
  EXPECT_EQ(model.counters.unclosed_ranges, 2u);
}

TEST(Pair, TheEndOfASentinelIsNoFault) {
  const Model model = OneWarp().Finish("a", 0).Start("a").Finish("a", 2).Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 2-3t"));
  EXPECT_FALSE(AnyFault(model.counters));
  EXPECT_THAT(model.unmatched_ends, ElementsAre());
}

TEST(Pair, TheFirstEndOfATokenCounts) {
  const Model model =
      OneWarp().Start("a").Finish("a", 1).Start("a").Finish("a", 1).Finish("a", 3).Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-2t", "a 0 3-5t"));
  EXPECT_EQ(model.counters.tokens_again, 1u);
  EXPECT_EQ(model.counters.unmatched_ends, 0u);
}

TEST(Pair, ManyTokensThatAreNeverEnded) {
  OneWarp warp;
  for (int i = 0; i < 1500; ++i) warp.Start(i % 2 == 0 ? "a" : "b");
  warp.Finish("a", 1).Finish("a", 1499);
  const Model model = warp.EndsAt(2000).Pair();
  EXPECT_EQ(model.ranges.size(), 1024u);
  EXPECT_EQ(model.counters.depth_overflows, 1500u - 1024u);
  EXPECT_EQ(model.counters.unclosed_ranges, 1023u);
  EXPECT_EQ(model.counters.unmatched_ends, 0u) << "of what was dropped";
  EXPECT_EQ(model.ranges.depth.back(), 511u);
}

TEST(Pair, AHoleEndsTokens) {
  const Model model = OneWarp().Start("a").Mark("m").Hole().Mark("m").Finish("a", 1).Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-2!t"));
  EXPECT_EQ(model.counters.ranges_cut, 1u);
  EXPECT_EQ(model.counters.unmatched_ends_lossy, 1u);
}

TEST(Pair, ScopedRangesCloseByName) {
  const Model model = OneWarp().Begin("a").Begin("b").End("b").End("a").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-4", "b 1 2-3"));
  EXPECT_EQ(model.ranges.begin_event[1], 1u);
  EXPECT_EQ(model.ranges.end_event[1], 2u);
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(Pair, MarksAreKeptInOrder) {
  const Model model = OneWarp().Mark("m").Push("a").Mark("n").Pop().Pair();
  EXPECT_THAT(model.marks.event, ElementsAre(0u, 2u));
  EXPECT_EQ(model.warps.mark_count[0], 2u);
  EXPECT_EQ(model.warps.range_count[0], 1u);
}

TEST(Pair, TwoLaneGroupsThatTakeTurnsAreSeparatedByName) {
  // The first group enters and leaves "a" while the second one is between "b" and its end.
  const Model model = OneWarp().Begin("a").Begin("b").End("a").End("b").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-3x", "b 1 2-4x"));
  EXPECT_EQ(model.counters.crossed_closes, 1u);
}

TEST(Pair, CrossedRangesNeverShareADepthWhileBothAreOpen) {
  OneWarp warp;
  warp.Begin("a");
  for (int i = 0; i < 5'000; ++i) warp.Begin("b").End("a").Begin("a").End("b");
  const Model model = warp.End("a").Pair();
  EXPECT_EQ(model.counters.depth_overflows, 0u);
  EXPECT_EQ(model.counters.unclosed_ranges, 0u);
  std::map<uint16_t, uint64_t> free_from;
  for (size_t i = 0; i < model.ranges.size(); ++i) {
    EXPECT_LT(model.ranges.depth[i], 2);
    uint64_t& from = free_from[model.ranges.depth[i]];
    EXPECT_LE(from, model.ranges.begin_cycles[i]);
    from = model.ranges.end_cycles[i];
  }
}

TEST(Pair, APopClosesThePushUnderAScopedRangeAndSaysSo) {
  const Model model = OneWarp().Push("p").Begin("r").Pop().End("r").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("p 0 1-3x", "r 1 2-4x"));
  EXPECT_EQ(model.counters.crossed_closes, 1u);
}

TEST(Pair, AnEndOfAnotherNameClosesNothing) {
  const Model model = OneWarp().Begin("a").End("b").End("a").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-3"));
  EXPECT_THAT(model.unmatched_ends, ElementsAre(1u));
  EXPECT_EQ(model.counters.unmatched_ends, 1u);
}

TEST(Pair, AnEndDoesNotCloseAPushOfItsName) {
  const Model model = OneWarp().Push("a").End("a").Pop().Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-3"));
  EXPECT_EQ(model.counters.unmatched_ends, 1u);
}

TEST(Pair, WhatIsOpenAtTheEndOfTheWarpEndsThereAndSaysSo) {
  const Model model = OneWarp().Push("a").Push("b").Pop().Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-4!", "b 1 2-3"));
  EXPECT_EQ(model.ranges.end_event[0], kNoRow);
  EXPECT_EQ(model.counters.unclosed_ranges, 1u);
}

TEST(Pair, OfSeveralEndsOfOneScopedRangeTheLastCounts) {
  // Some lanes return early, the others go on: both leave both scopes.
  const Model model =
      OneWarp().Begin("out").Begin("in").End("in").End("out").Mark("m").End("in").End("out").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("out 0 1-7", "in 1 2-6"));
  EXPECT_EQ(model.ranges.end_event[0], 6u);
  EXPECT_EQ(model.counters.closed_again, 2u);
  EXPECT_EQ(model.counters.unmatched_ends, 0u);
}

TEST(Pair, ARangeThatOutlivesTheOneAroundItIsCrossed) {
  const Model model = OneWarp().Begin("out").Begin("in").End("in").End("out").End("in").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("out 0 1-4x", "in 1 2-5x"));
}

TEST(Pair, AnEndAfterAnotherBeginIsNobodys) {
  const Model model = OneWarp().Begin("a").End("a").Begin("b").End("b").End("a").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-2", "b 0 3-4"));
  EXPECT_EQ(model.counters.unmatched_ends, 1u);
  EXPECT_EQ(model.counters.closed_again, 0u);
}

TEST(Pair, WithAnOverwrittenBeginAnEndMayBeAnothersAndExtendsNothing) {
  const Model model = OneWarp().Flags(kWarpBeginMissing).Begin("a").End("a").End("a").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-2"));
  EXPECT_EQ(model.counters.unmatched_ends_lossy, 1u);
}

TEST(Pair, EndsWhoseBeginsWereOverwrittenAreCountedAsSuch) {
  const Model model = OneWarp().Flags(kWarpBeginMissing).Pop().Push("a").Pop().Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 2-3"));
  EXPECT_EQ(model.counters.unmatched_ends_lossy, 1u);
  EXPECT_EQ(model.counters.unmatched_ends, 0u);
}

TEST(Pair, APushInALoopWithoutItsPopIsCountedNotKept) {
  OneWarp warp;
  for (uint32_t i = 0; i < kMaxDepth + 10; ++i) warp.Push("leak").Push("work").Pop();
  const Model model = warp.Pair();
  // From the 1,024th on only "work" fits, and then nothing does.
  EXPECT_EQ(model.ranges.size() + model.counters.depth_overflows, 2u * (kMaxDepth + 10));
  EXPECT_EQ(model.counters.unclosed_ranges, kMaxDepth);
  EXPECT_EQ(model.counters.unmatched_ends, 0u);
}

TEST(LeftOut, APopBelongsToItsPush) {
  const Model model = OneWarp()
                          .Without({"x"})
                          .Push("a")
                          .Push("x")
                          .Push("b")
                          .Pop()
                          .Pop()
                          .Push("c")
                          .Pop()
                          .Pop()
                          .Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-8", "b 1 3-4", "c 1 6-7"));
  EXPECT_THAT(model.events.cycles, ElementsAre(1u, 3u, 4u, 6u, 7u, 8u));
  EXPECT_THAT(model.ranges.end_event, ElementsAre(5u, 2u, 4u));
  EXPECT_EQ(model.warps.event_count[0], 6u);
  EXPECT_EQ(model.counters.events_left_out, 2u);
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(LeftOut, WhatIsNotShownIsNotMissed) {
  // An end without its begin, a begin without its end, as where one of the sites was left out.
  const Model model =
      OneWarp().Without({"x"}).End("x").Mark("x").Begin("x").Push("x").Mark("m").Pair();
  EXPECT_EQ(model.ranges.size(), 0u);
  EXPECT_THAT(model.marks.event, ElementsAre(0u));
  EXPECT_THAT(model.events.cycles, ElementsAre(5u));
  EXPECT_EQ(model.counters.events_left_out, 4u);
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(LeftOut, WhatIsNotShownCrossesNothing) {
  const Model model = OneWarp().Without({"x"}).Push("x").Begin("r").Pop().End("r").Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("r 0 2-4"));
  EXPECT_FALSE(AnyFault(model.counters));
}

TEST(LeftOut, HolesStayWhereTheyWere) {
  const Model model = OneWarp()
                          .Without({"x"})
                          .Push("a")
                          .Push("x")
                          .Hole()
                          .Mark("x")
                          .Mark("m")
                          .Mark("x")
                          .Hole()
                          .Mark("x")
                          .Pair();
  EXPECT_THAT(Drawn(model), ElementsAre("a 0 1-2!"));
  EXPECT_EQ(model.ranges.flags[0], kRangeUnclosed | kRangeCut);
  EXPECT_EQ(model.counters.ranges_cut, 1u);
  // Behind the second one nothing is shown.
  EXPECT_THAT(model.holes, ElementsAre(1u));
  EXPECT_THAT(model.events.cycles, ElementsAre(1u, 4u));
}

TEST(LeftOut, APushInALoopWithoutItsPopHidesItsOwn) {
  OneWarp warp;
  warp.Without({"leak"});
  for (uint32_t i = 0; i < kMaxDepth + 10; ++i) warp.Push("leak");
  for (uint32_t i = 0; i < kMaxDepth + 10; ++i) warp.Pop();
  const Model model = warp.Push("work").Pop().Pair();
  EXPECT_EQ(model.events.cycles.size(), 2u);
  EXPECT_EQ(model.ranges.size(), 1u);
  EXPECT_FALSE(AnyFault(model.counters));
}

// Any events in any order, against a warp that never recorded what is left out: it misses those
// events, and the pops that a plain stack gives to such pushes.
TEST(LeftOut, IsAsIfItHadNeverBeenRecorded) {
  std::mt19937 random(7);
  const std::vector<std::string> names = {"a", "b", "x", "y"};
  for (int round = 0; round < 3000; ++round) {
    struct Event {
      EventKind kind;
      std::string name;
      bool hidden = false;
    };
    std::set<std::string> left_out;
    for (const std::string& name : names) {
      if (random() % 2 == 0) left_out.insert(name);
    }
    std::vector<Event> events(random() % 40);
    std::vector<bool> pushes;  // open ones: true if left out
    for (Event& event : events) {
      event.kind = static_cast<EventKind>(random() % 5);
      if (event.kind == EventKind::kPop) {
        if (pushes.empty()) continue;
        event.hidden = pushes.back();
        pushes.pop_back();
        continue;
      }
      event.name = names[random() % names.size()];
      event.hidden = left_out.contains(event.name);
      if (event.kind == EventKind::kPush) pushes.push_back(event.hidden);
    }
    OneWarp recorded, never;
    recorded.Without(left_out);
    uint64_t hidden = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      const auto tell = [&](OneWarp& warp) {
        warp.At(i + 1);
        switch (events[i].kind) {
          case EventKind::kMark:
            return warp.Mark(events[i].name);
          case EventKind::kPush:
            return warp.Push(events[i].name);
          case EventKind::kPop:
            return warp.Pop();
          case EventKind::kRangeBegin:
            return warp.Begin(events[i].name);
          default:
            return warp.End(events[i].name);
        }
      };
      tell(recorded);
      hidden += events[i].hidden ? 1 : 0;
      if (!events[i].hidden) tell(never);
    }
    const uint8_t flags = random() % 4 == 0 ? kWarpBeginMissing : 0;
    const Model model = recorded.Flags(flags).EndsAt(events.size() + 1).Pair();
    const Model expected = never.Flags(flags).EndsAt(events.size() + 1).Pair();
    SCOPED_TRACE(round);
    ASSERT_EQ(Drawn(model), Drawn(expected));
    ASSERT_EQ(model.events.cycles, expected.events.cycles);
    ASSERT_EQ(model.marks.event, expected.marks.event);
    ASSERT_EQ(model.unmatched_ends, expected.unmatched_ends);
    ASSERT_EQ(model.ranges.begin_event, expected.ranges.begin_event);
    ASSERT_EQ(model.ranges.end_event, expected.ranges.end_event);
    ASSERT_EQ(model.counters.events_left_out, hidden);
    for (const CounterInfo& info : AllCounters()) {
      if (info.member == &Counters::events_left_out) continue;
      ASSERT_EQ(model.counters.*info.member, expected.counters.*info.member) << info.name;
    }
  }
}

}  // namespace
}  // namespace iket::trace
