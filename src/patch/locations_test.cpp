#include "patch/locations.h"

#include <gtest/gtest.h>

namespace iket::patch {
namespace {

LocatedSite Site(std::string name, std::vector<cubin::SourceLine> lines) {
  return {.name = std::move(name), .event = 1, .lines = std::move(lines)};
}
const cubin::SourceLine kHeader{"/usr/include/iket/iket.cuh", 420};

TEST(Places, AreTheInnermostLinesOutsideOfTheHeader) {
  const auto places =
      PlacesOf({Site("a", {kHeader, kHeader, {"k.cu", 7}, {"k.cu", 20}}),
                Site("b", {kHeader, {"k.cu", 8}}), Site("c", {}), Site("d", {kHeader})});
  EXPECT_EQ(places[0], (Location{"k.cu", 7}));
  EXPECT_EQ(places[1], (Location{"k.cu", 8}));
  EXPECT_FALSE(places[2].known());
  EXPECT_FALSE(places[3].known()) << "nothing but the header";
}

TEST(Places, AreTheCallersOfAWrapper) {
  const auto places = PlacesOf({Site("a", {kHeader, {"log.cuh", 3}, {"k.cu", 7}}),
                                Site("b", {kHeader, {"log.cuh", 3}, {"k.cu", 9}}),
                                Site("a", {kHeader, {"log.cuh", 3}, {"k.cu", 7}})});
  EXPECT_EQ(places[0], (Location{"k.cu", 7}));
  EXPECT_EQ(places[1], (Location{"k.cu", 9}));
  EXPECT_EQ(places[2], (Location{"k.cu", 7}));
}

TEST(Places, AWrapperOfAWrapper) {
  const auto places =
      PlacesOf({Site("a", {kHeader, {"log.cuh", 3}, {"log.cuh", 8}, {"k.cu", 7}}),
                Site("b", {kHeader, {"log.cuh", 3}, {"log.cuh", 8}, {"k.cu", 9}}),
                Site("c", {kHeader, {"log.cuh", 3}, {"log.cuh", 8}, {"k.cu", 11}})});
  EXPECT_EQ(places[0], (Location{"k.cu", 7}));
  EXPECT_EQ(places[2], (Location{"k.cu", 11}));
  const auto apart = PlacesOf({Site("a", {kHeader, {"log.cuh", 3}, {"log.cuh", 8}, {"k.cu", 7}}),
                               Site("b", {kHeader, {"log.cuh", 3}, {"log.cuh", 9}, {"k.cu", 9}})});
  EXPECT_EQ(apart[0], (Location{"log.cuh", 8}));
}

// One name, wherever it is called from, and two on one line of a function that is inlined twice:
// the line is where they are.
TEST(Places, LinesThatAreNoWrappersStay) {
  const auto one = PlacesOf({Site("a", {kHeader, {"f.cuh", 3}, {"k.cu", 7}}),
                             Site("a", {kHeader, {"f.cuh", 3}, {"k.cu", 9}})});
  EXPECT_EQ(one[0], (Location{"f.cuh", 3}));
  const auto two = PlacesOf({Site("a", {kHeader, {"f.cuh", 3}, {"k.cu", 7}}),
                             Site("b", {kHeader, {"f.cuh", 3}, {"k.cu", 7}}),
                             Site("a", {kHeader, {"f.cuh", 3}, {"k.cu", 9}}),
                             Site("b", {kHeader, {"f.cuh", 3}, {"k.cu", 9}})});
  for (const Location& place : two) EXPECT_EQ(place, (Location{"f.cuh", 3}));
  const auto outermost =
      PlacesOf({Site("a", {kHeader, {"k.cu", 3}}), Site("b", {kHeader, {"k.cu", 3}})});
  EXPECT_EQ(outermost[0], (Location{"k.cu", 3}));
}

}  // namespace
}  // namespace iket::patch
