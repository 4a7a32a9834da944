#include "patch/locations.h"

#include <gtest/gtest.h>

namespace iket::patch {
namespace {

const cubin::SourceLine kHeader{"/usr/include/iket/iket.cuh", 420};

// What the header's innermost function is called, a mark's of a name of one letter.
std::string Emit(char name) {
  return "_ZN4iket2v16detail4emitINS0_10event_nameIXtlNS1_7literalILi2EEEtlA2_cLc" +
         std::to_string(int{name}) + "ELc0EEEEEELNS1_4kindE0EEEjv";
}
const std::string kEmit[] = {Emit('a'), Emit('b'), Emit('c'), Emit('d')};

// A mark; `lines` begin in the header.
LocatedSite Site(std::string name, std::vector<cubin::SourceLine> lines) {
  if (!lines.empty()) lines.front().function = kEmit[name[0] - 'a'];
  return {.name = std::move(name), .kind = EventKind::kMark, .lines = std::move(lines)};
}

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

// Unrolled code: what has no row of its own is in that of the mark before it.
TEST(Places, OfAnotherEventAreUnknown) {
  LocatedSite other = Site("b", {kHeader, {"k.cu", 7}});
  other.lines.front().function = kEmit[0];
  LocatedSite end = Site("a", {kHeader, {"k.cu", 7}});
  end.kind = EventKind::kRangeEnd;
  const auto places = PlacesOf({Site("a", {kHeader, {"k.cu", 7}}), other, end});
  EXPECT_TRUE(places[0].known());
  EXPECT_FALSE(places[1].known());
  EXPECT_FALSE(places[2].known());
}

// Names of macros are types without their text: what one function stores is one event.
TEST(Places, OfMacrosAreKnownAsLongAsTheyAreTold) {
  const std::string one = "_ZN4iket2v16detail4emitIZ1kE9iket_nameLNS1_4kindE0EEEjv";
  const std::string two = "_ZN4iket2v16detail4emitIZ1kE9iket_name_0LNS1_4kindE0EEEjv";
  LocatedSite a = Site("a", {kHeader, {"k.cu", 7}}), b = Site("b", {kHeader, {"k.cu", 8}});
  a.lines.front().function = one;
  b.lines.front().function = two;
  EXPECT_TRUE(PlacesOf({a, b})[1].known());
  b.lines.front().function = one;
  EXPECT_FALSE(PlacesOf({a, b})[0].known());
  EXPECT_FALSE(PlacesOf({a, b})[1].known());
}

TEST(Places, NobodyIsCalledFromTheHeader) {
  EXPECT_FALSE(PlacesOf({Site("a", {kHeader, {"k.cu", 7}, kHeader, {"k.cu", 9}})})[0].known());
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
