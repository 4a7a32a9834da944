#include "trace/edge_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// One launch of two CTAs of three warps, and the edge load -> mma. Each event is a microsecond
// after the one before.
class Story {
 public:
  Story() {
    const uint32_t grid = gpu_.Launch(gpu_.AddKernel("kernel"), {2, 1, 1}, {96, 1, 1});
    for (uint32_t cta = 0; cta < 2; ++cta) {
      for (uint32_t i = 0; i < 3; ++i) warps_.push_back(gpu_.Begin(grid, cta, i, cta, i));
    }
    gpu_.facts().edges.push_back({.dag = "gemm", .from = "load", .to = "mma"});
    began_ns_ = gpu_.now_ns();
  }
  Story& Load(uint32_t warp, uint64_t payload) { return Range(warp, load_, payload); }
  Story& Mma(uint32_t warp, uint64_t payload) { return Range(warp, mma_, payload); }
  Story& Begin(uint32_t warp, uint32_t event) { return Add(warp, event, 0); }
  Story& Pop(uint32_t warp) { return Add(warp, pop_, 0); }
  Story& Ready(uint32_t warp) { return Add(warp, ready_, 0); }
  uint32_t load() const { return load_; }
  uint32_t mma() const { return mma_; }
  SyntheticGpu& gpu() { return gpu_; }

  EdgeLinks Links() {
    for (const auto warp : warps_) gpu_.Exit(warp);
    Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    model_ = std::move(*decoder.Finish());
    return LinkEdges(model_);
  }
  // Microseconds since the warps began.
  std::vector<std::pair<int, int>> Moments(const EdgeLinks& links) const {
    std::vector<std::pair<int, int>> moments;
    for (const EdgeLink& link : links.links) moments.emplace_back(At(link.from), At(link.to));
    std::ranges::sort(moments);
    return moments;
  }

 private:
  Story& Range(uint32_t warp, uint32_t event, uint64_t payload) {
    Add(warp, event, payload);
    return Pop(warp);
  }
  Story& Add(uint32_t warp, uint32_t event, uint64_t payload) {
    gpu_.Pass(1000);
    gpu_.Event(warps_[warp], event, payload);
    return *this;
  }
  int At(uint32_t event) const {
    const uint32_t warp = model_.events.warp[event];
    const double ns = model_.NsOfWarp(warp, model_.events.cycles[event]) -
                      model_.warps.begin_ns[model_.launches[0].first_warp];
    return static_cast<int>(std::lround(ns / 1000));
  }

  SyntheticGpu gpu_;
  uint32_t load_ = gpu_.Declare(capture::EventKind::kPush, "load", capture::PayloadType::kU32);
  uint32_t mma_ = gpu_.Declare(capture::EventKind::kPush, "mma", capture::PayloadType::kU32);
  uint32_t ready_ = gpu_.Declare(capture::EventKind::kMark, "ready");
  uint32_t pop_ = gpu_.Declare(capture::EventKind::kPop, "");
  std::vector<SyntheticGpu::WarpId> warps_;
  double began_ns_ = 0;
  Model model_;
};

TEST(EdgeLinks, FromTheEndOfTheOneToTheBeginOfTheOther) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Mma(1, 1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 3)));
  EXPECT_EQ(links.counts[0].linked, 1u);
  EXPECT_EQ(links.counts[0].from, 1u);
}

TEST(EdgeLinks, WhatBeganBeforeWaited) {
  Story story;
  // mma 1 to 4, load 2 to 3.
  const EdgeLinks links = story.Begin(1, story.mma()).Load(0, 0).Pop(1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(3, 4)));
}

TEST(EdgeLinks, WhatWasOverBeforeIsNoDependency) {
  Story story;
  const EdgeLinks links = story.Mma(1, 1).Load(0, 1).Links();
  EXPECT_THAT(links.links, IsEmpty());
  EXPECT_EQ(links.counts[0].backward, 1u);
}

TEST(EdgeLinks, ByPayloadWhereBothHaveTheSame) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Load(0, 2).Mma(1, 2).Mma(1, 1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 7), Pair(4, 5)));
}

TEST(EdgeLinks, ElseInOrder) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Load(0, 2).Mma(1, 8).Mma(1, 7).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 5), Pair(4, 7)));
}

TEST(EdgeLinks, RoundsThatCannotBeToldApart) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Load(0, 2).Mma(1, 1).Links();
  EXPECT_THAT(links.links, IsEmpty());
  EXPECT_EQ(links.counts[0].unequal, 1u);
}

TEST(EdgeLinks, AProducerHasAllItsConsumers) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Mma(1, 1).Mma(2, 1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 3), Pair(2, 5)));
}

TEST(EdgeLinks, WarpsThatHaveBothAreTheirOwn) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Load(1, 1).Mma(0, 1).Mma(1, 1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 5), Pair(4, 7)));
}

TEST(EdgeLinks, WhatDependsOnItselfDependsOnTheOneBefore) {
  Story story;
  story.gpu().facts().edges = {{.from = "load", .to = "load"}};
  const EdgeLinks links = story.Load(0, 1).Load(0, 1).Load(1, 1).Load(0, 1).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 3), Pair(4, 7)));
}

TEST(EdgeLinks, WithinACta) {
  Story story;
  const EdgeLinks links = story.Load(0, 1).Mma(3, 1).Links();
  EXPECT_THAT(links.links, IsEmpty());
  EXPECT_EQ(links.counts[0].from, 1u);
  EXPECT_EQ(links.counts[0].to, 1u);
}

TEST(EdgeLinks, MarksAreMoments) {
  Story story;
  story.gpu().facts().edges = {{.from = "load", .to = "ready"}, {.from = "nothing", .to = "mma"}};
  const EdgeLinks links = story.Load(0, 1).Ready(0).Links();
  EXPECT_THAT(story.Moments(links), ElementsAre(Pair(2, 3)));
  EXPECT_EQ(links.counts[1].from, 0u);
}

}  // namespace
}  // namespace iket::trace
