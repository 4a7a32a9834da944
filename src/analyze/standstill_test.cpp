#include "analyze/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::analyze {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = capture::EventKind;

// One launch of two CTAs of four warps, of which the first loads and the others multiply.
class Standstill : public ::testing::Test {
 protected:
  trace::Model Decode() {
    trace::Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    return std::move(*decoder.Finish());
  }
  std::string Name(const trace::Model& model, uint32_t declaration) {
    return declaration == trace::kNoRow ? "-" : model.DeclarationName(declaration);
  }
  trace::SyntheticGpu::WarpId Begin(uint32_t cta, uint32_t index) {
    gpu_.Pass(10);
    return gpu_.Begin(grid_, cta, index, cta, index);
  }

  trace::SyntheticGpu gpu_;
  uint32_t kernel_ = gpu_.AddKernel("k");
  uint32_t load_ = gpu_.Declare(Kind::kPush, "load", capture::PayloadType::kU32);
  uint32_t mma_ = gpu_.Declare(Kind::kRangeBegin, "mma");
  uint32_t mma_end_ = gpu_.Declare(Kind::kRangeEnd, "mma");
  uint32_t wait_ = gpu_.Declare(Kind::kPush, "wait");
  uint32_t pop_ = gpu_.Declare(Kind::kPop, "");
  uint32_t tile_ = gpu_.Declare(Kind::kMark, "tile", capture::PayloadType::kU32);
  uint32_t grid_ = gpu_.Launch(kernel_, {2, 1, 1}, {128, 1, 1});
};

TEST_F(Standstill, IsEmptyWhereAllWarpsEnded) {
  const auto warp = Begin(0, 0);
  gpu_.Event(warp, wait_);
  gpu_.Exit(warp);
  EXPECT_THAT(FindStandstill(Decode()), IsEmpty());
}

TEST_F(Standstill, PutsWarpsOfEqualStateTogether) {
  for (uint32_t cta = 0; cta < 2; ++cta) {
    const auto producer = Begin(cta, 0);
    gpu_.Event(producer, load_, 5 + cta);
    gpu_.Pass(100);
    gpu_.Event(producer, wait_);
    for (uint32_t index = 1; index < 3; ++index) {
      const auto consumer = Begin(cta, index);
      gpu_.Event(consumer, mma_);
      gpu_.Pass(10);
      gpu_.Event(consumer, tile_, 10 * cta + index);
    }
  }
  const auto ended = Begin(0, 3);
  gpu_.Exit(ended);

  const trace::Model model = Decode();
  const auto launches = FindStandstill(model);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].launch, 0u);
  EXPECT_EQ(launches[0].running, 6u);
  EXPECT_EQ(launches[0].ended, 1u);
  EXPECT_EQ(launches[0].not_seen, 1u);
  ASSERT_EQ(launches[0].groups.size(), 2u);

  const StandstillGroup& consumers = launches[0].groups[0];
  EXPECT_EQ(consumers.warps.size(), 4u);
  ASSERT_EQ(consumers.open.size(), 1u);
  EXPECT_EQ(Name(model, consumers.open[0]), "mma");
  EXPECT_EQ(Name(model, consumers.last_event), "tile");
  EXPECT_FALSE(consumers.last_closes);
  EXPECT_THAT(consumers.payloads, ElementsAre(1, 2, 11, 12));
  EXPECT_LT(consumers.first_ns, consumers.last_ns);
  EXPECT_FALSE(consumers.may_be_deeper);

  const StandstillGroup& producers = launches[0].groups[1];
  EXPECT_EQ(producers.warps.size(), 2u);
  ASSERT_EQ(producers.open.size(), 2u);
  EXPECT_EQ(Name(model, producers.open[0]), "load");
  EXPECT_EQ(Name(model, producers.open[1]), "wait");
  EXPECT_EQ(Name(model, producers.last_event), "wait");
  EXPECT_THAT(producers.payloads, IsEmpty());
  EXPECT_GE(launches[0].newest_ns, producers.last_ns);
}

TEST_F(Standstill, NamesTheRangeThatTheLastEventClosed) {
  const auto pushed = Begin(0, 0);
  gpu_.Event(pushed, load_, 7);
  gpu_.Event(pushed, pop_);
  const auto scoped = Begin(0, 1);
  gpu_.Event(scoped, mma_);
  gpu_.Event(scoped, mma_end_);
  const auto nothing = Begin(0, 2);
  (void)nothing;

  const trace::Model model = Decode();
  const auto launches = FindStandstill(model);
  ASSERT_EQ(launches.size(), 1u);
  std::vector<std::string> states;
  for (const StandstillGroup& group : launches[0].groups) {
    EXPECT_THAT(group.open, IsEmpty());
    states.push_back(Name(model, group.last_event) + (group.last_closes ? " closed" : ""));
    if (states.back() == "load closed") {
      EXPECT_THAT(group.payloads, ElementsAre(7));
    }
  }
  EXPECT_THAT(states, ::testing::UnorderedElementsAre("load closed", "mma closed", "-"));
}

TEST_F(Standstill, SaysWhereAWarpMayHaveMoreRangesOpen) {
  const auto warp = Begin(0, 0);
  gpu_.Event(warp, load_, 1);
  for (uint32_t i = 0; i < 3 * gpu_.records_per_ring(); ++i) {
    gpu_.Pass(10);
    gpu_.Event(warp, tile_, i);
  }
  const auto launches = FindStandstill(Decode());
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_EQ(launches[0].groups.size(), 1u);
  EXPECT_TRUE(launches[0].groups[0].may_be_deeper);
  EXPECT_THAT(launches[0].groups[0].open, IsEmpty());
}

}  // namespace
}  // namespace iket::analyze
