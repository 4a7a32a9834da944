#include "trace/flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// One launch of CTAs of two warps, each CTA on an SM of its own.
class Story {
 public:
  explicit Story(uint32_t ctas = 1, uint32_t cluster = 0) {
    const uint32_t grid = gpu_.Launch(kernel_, {ctas, 1, 1}, {64, 1, 1});
    if (cluster != 0) gpu_.facts().launches.back().cluster = {cluster, 1, 1};
    for (uint32_t cta = 0; cta < ctas; ++cta) {
      for (uint32_t i = 0; i < 2; ++i) warps_.push_back(gpu_.Begin(grid, cta, i, cta, i));
    }
  }
  Story& Out(uint32_t warp, uint64_t id) { return Add(warp, out_, id); }
  Story& In(uint32_t warp, uint64_t id) { return Add(warp, in_, id); }
  Story& Other(uint32_t warp, uint64_t id) { return Add(warp, other_, id); }

  const Model& Told() {
    for (const auto warp : warps_) gpu_.Exit(warp);
    Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    model_ = std::move(*decoder.Finish());
    return model_;
  }
  // {from, to} of each dependency, events numbered as they were told.
  std::vector<std::pair<int, int>> Links() const {
    std::vector<std::pair<int, int>> links;
    for (size_t i = 0; i < model_.flows.size(); ++i) {
      links.emplace_back(NumberOf(model_.flows.from[i]), NumberOf(model_.flows.to[i]));
    }
    std::ranges::sort(links);
    return links;
  }

 private:
  Story& Add(uint32_t warp, uint32_t event, uint64_t id) {
    gpu_.Pass(1000);
    ns_.push_back(gpu_.now_ns());
    gpu_.Event(warps_[warp], event, id);
    return *this;
  }
  int NumberOf(uint32_t event) const {
    const double ns = model_.NsOfWarp(model_.events.warp[event], model_.events.cycles[event]);
    const double first = ns_[0] - 1000;  // of the warps' begin
    int nearest = 0;
    for (size_t i = 0; i < ns_.size(); ++i) {
      if (std::abs(ns_[i] - first - ns) <
          std::abs(ns_[static_cast<size_t>(nearest)] - first - ns)) {
        nearest = static_cast<int>(i);
      }
    }
    return nearest;
  }

  SyntheticGpu gpu_;
  uint32_t kernel_ = gpu_.AddKernel("k");
  uint32_t out_ = gpu_.Declare(capture::EventKind::kFlowOut, "full", capture::PayloadType::kU32);
  uint32_t in_ = gpu_.Declare(capture::EventKind::kFlowIn, "full", capture::PayloadType::kU32);
  uint32_t other_ = gpu_.Declare(capture::EventKind::kFlowOut, "other", capture::PayloadType::kU32);
  std::vector<SyntheticGpu::WarpId> warps_;
  std::vector<double> ns_;
  Model model_;
};

TEST(Flows, WhatCameIsWhatWentOutLast) {
  Story story;
  const Model& model = story.Out(0, 7).In(1, 7).Out(0, 7).Out(0, 7).In(1, 7).Told();
  EXPECT_THAT(story.Links(), ElementsAre(Pair(0, 1), Pair(3, 4)));
  EXPECT_EQ(model.counters.flows_unmatched, 0u);
  EXPECT_EQ(model.marks.size(), 5u) << "they are points, too";
}

TEST(Flows, OneComesToSeveral) {
  Story story;
  story.Out(0, 7).In(1, 7).In(0, 7).Told();
  EXPECT_THAT(story.Links(), ElementsAre(Pair(0, 1), Pair(0, 2)));
}

TEST(Flows, NameAndIdMustBeTheSame) {
  Story story;
  const Model& model = story.Out(0, 7).In(1, 8).Other(0, 8).In(1, 8).Told();
  EXPECT_THAT(story.Links(), IsEmpty());
  EXPECT_EQ(model.counters.flows_unmatched, 2u);
}

TEST(Flows, NothingComesBeforeItGoes) {
  Story story;
  const Model& model = story.In(1, 7).Out(0, 7).Told();
  EXPECT_THAT(story.Links(), IsEmpty());
  EXPECT_EQ(model.counters.flows_unmatched, 1u);
}

TEST(Flows, WithoutClustersEachCtaIsForItself) {
  Story story(2);
  story.Out(0, 7).In(2, 7).Told();
  EXPECT_THAT(story.Links(), IsEmpty());
}

TEST(Flows, InAClusterItComesFromOtherCtas) {
  Story story(4, 2);
  story.Out(0, 7).In(2, 7).In(4, 7).Told();
  EXPECT_THAT(story.Links(), ElementsAre(Pair(0, 1)));
}

}  // namespace
}  // namespace iket::trace
