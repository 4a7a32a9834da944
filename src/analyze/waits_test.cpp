#include "analyze/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::analyze {
namespace {

using Kind = capture::EventKind;
using Type = capture::PayloadType;

class WaitsTest : public ::testing::Test {
 protected:
  trace::SyntheticGpu::WarpId Begin(uint32_t cta, uint32_t index) {
    gpu_.Pass(10);
    return gpu_.Begin(grid_, cta, index, cta, index);
  }
  // What the warp of this CTA and index waits for.
  std::optional<Wait> Of(uint32_t cta, uint32_t index) {
    trace::Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    model_ = std::move(*decoder.Finish());
    for (uint32_t warp = 0; warp < model_.warps.size(); ++warp) {
      if (model_.warps.cta_x[warp] == cta && model_.warps.index[warp] == index) {
        return Waits(model_, model_.warps.launch[warp]).Of(warp);
      }
    }
    return std::nullopt;
  }

  trace::SyntheticGpu gpu_;
  trace::Model model_;
  uint32_t kernel_ = gpu_.AddKernel("k");
  uint32_t wait_ = gpu_.Declare(Kind::kMark, "wait full", Type::kU32);
  uint32_t arrive_ = gpu_.Declare(Kind::kMark, "arrive_full", Type::kU32);
  uint32_t enter_ = gpu_.Declare(Kind::kPush, "wait.empty");
  uint32_t release_ = gpu_.Declare(Kind::kMark, "release empty", Type::kU32);
  uint32_t pop_ = gpu_.Declare(Kind::kPop, "");
  uint32_t alone_ = gpu_.Declare(Kind::kMark, "wait alone");
  uint32_t other_ = gpu_.Declare(Kind::kMark, "waiting full", Type::kU32);
  uint32_t grid_ = gpu_.Launch(kernel_, {4, 1, 1}, {64, 1, 1});
};

TEST_F(WaitsTest, CountsBothSidesByPayload) {
  const auto consumer = Begin(0, 0), producer = Begin(0, 1);
  for (uint32_t stage : {0u, 1u, 0u}) gpu_.Event(consumer, wait_, stage);
  for (uint32_t stage : {0u, 1u, 2u, 2u}) gpu_.Event(producer, arrive_, stage);
  const auto wait = Of(0, 0);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->declaration, 0u + model_.events.declaration[0]);
  EXPECT_EQ(wait->times, 2u);
  EXPECT_EQ(wait->arrivals, 1u);
  EXPECT_TRUE(wait->without_partner());
  EXPECT_FALSE(Of(0, 1));  // which waits for nothing

  gpu_.Event(producer, arrive_, 0);
  EXPECT_FALSE(Of(0, 0)->without_partner());
}

TEST_F(WaitsTest, OfAnotherCtaIsNoPartnerUnlessTheyAreACluster) {
  gpu_.Event(Begin(0, 0), wait_, 7);
  gpu_.Event(Begin(1, 0), arrive_, 7);
  EXPECT_TRUE(Of(0, 0)->without_partner());
  gpu_.facts().launches.back().cluster = {2, 1, 1};
  EXPECT_FALSE(Of(0, 0)->without_partner());
}

TEST_F(WaitsTest, ARangeIsAWaitAsLongAsItIsTheInnermost) {
  const auto warp = Begin(0, 0), other = Begin(0, 1);
  gpu_.Event(warp, enter_);
  // It has no payload, so that of the partner does not count.
  gpu_.Event(other, release_, 3);
  EXPECT_FALSE(Of(0, 0)->without_partner());
  gpu_.Event(warp, pop_);
  EXPECT_FALSE(Of(0, 0));
  gpu_.Event(warp, enter_);
  const auto wait = Of(0, 0);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->times, 2u);
  EXPECT_TRUE(wait->without_partner());
}

TEST_F(WaitsTest, WhereNoPartnerIsDeclaredNothingIsSaid) {
  gpu_.Event(Begin(0, 0), alone_);
  gpu_.Event(Begin(0, 1), other_, 0);
  EXPECT_FALSE(Of(0, 0));
  EXPECT_FALSE(Of(0, 1));
}

TEST_F(WaitsTest, OfAPartnerThatWasLeftOutNothingIsSaid) {
  gpu_.Event(Begin(0, 0), wait_, 1);
  gpu_.Event(Begin(0, 1), arrive_, 1);
  for (capture::Declaration& declaration : gpu_.facts().declarations) {
    declaration.left_out = declaration.name == "arrive_full";
  }
  EXPECT_FALSE(Of(0, 0));
}

TEST_F(WaitsTest, AfterALossNothingIsCertain) {
  gpu_.Event(Begin(0, 0), wait_, 1);
  const auto chatty = Begin(0, 1);
  for (uint32_t i = 0; i < 2 * gpu_.records_per_ring(); ++i) gpu_.Event(chatty, arrive_, 2);
  const auto wait = Of(0, 0);
  ASSERT_TRUE(wait);
  EXPECT_TRUE(wait->lossy);
  EXPECT_FALSE(wait->without_partner());
}

}  // namespace
}  // namespace iket::analyze
