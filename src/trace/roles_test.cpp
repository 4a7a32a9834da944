#include "trace/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace iket::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A launch whose warps have ranges of these names and lengths, and marks of length 0.
struct Made {
  Model model;

  void Warp(uint32_t index, const std::vector<std::pair<std::string, uint64_t>>& ranges) {
    Warps& warps = model.warps;
    warps.index.push_back(index);
    warps.first_range.push_back(static_cast<uint32_t>(model.ranges.size()));
    warps.first_mark.push_back(static_cast<uint32_t>(model.marks.size()));
    warps.range_count.push_back(0);
    warps.mark_count.push_back(0);
    for (const auto& [name, cycles] : ranges) {
      const auto declaration = static_cast<uint32_t>(model.declarations.size());
      Declaration& it = model.declarations.emplace_back();
      const auto known = std::ranges::find(model.strings, name);
      it.name = static_cast<StringId>(known - model.strings.begin());
      if (known == model.strings.end()) model.strings.push_back(name);
      if (cycles == 0) {
        model.marks.event.push_back(static_cast<uint32_t>(model.events.declaration.size()));
        model.events.declaration.push_back(declaration);
        ++warps.mark_count.back();
      } else {
        model.ranges.warp.push_back(0);
        model.ranges.declaration.push_back(declaration);
        model.ranges.begin_cycles.push_back(100);
        model.ranges.end_cycles.push_back(100 + cycles);
        ++warps.range_count.back();
      }
    }
  }
  std::map<uint32_t, std::string> Roles() const {
    return RolesOf(model, {.warp_count = static_cast<uint32_t>(model.warps.index.size())});
  }
};

TEST(Roles, AreTheNamesThatNotAllHave) {
  Made made;
  made.Warp(0, {{"all", 9}, {"acquire", 5}, {"issue", 7}});
  made.Warp(1, {{"all", 9}});
  made.Warp(2, {{"all", 9}, {"mma", 5}, {"wait", 1}, {"stored", 0}});
  EXPECT_THAT(made.Roles(), ElementsAre(Pair(0, "issue, acquire"), Pair(2, "mma, stored")));
}

TEST(Roles, NobodyHasOneWhereAllDoTheSame) {
  Made made;
  made.Warp(0, {{"load", 9}, {"mma", 5}});
  made.Warp(1, {{"mma", 9}, {"load", 5}});
  EXPECT_THAT(made.Roles(), IsEmpty());
  EXPECT_THAT(Made().Roles(), IsEmpty());
}

TEST(Roles, AreOfBoundedLength) {
  Made made;
  made.Warp(0, {{std::string(1 << 20, 'x'), 9}, {std::string(36, 'y') + "\u00e4\u00e4\u00e4", 5}});
  made.Warp(1, {});
  EXPECT_THAT(made.Roles(),
              ElementsAre(Pair(0, std::string(37, 'x') + "..., " + std::string(36, 'y') + "...")));
}

// What one CTA's warp does not come to, that of another may.
TEST(Roles, AreOfAllCtas) {
  Made made;
  made.Warp(0, {{"load", 9}});
  made.Warp(1, {});
  made.Warp(1, {{"load", 9}, {"spare", 1}});
  EXPECT_THAT(made.Roles(), ElementsAre(Pair(1, "spare")));
}

TEST(Roles, NeitherTheUnknownNorTheNameless) {
  Made made;
  made.Warp(kNoRow, {{"lost", 9}});
  made.Warp(0, {{"", 9}});
  made.Warp(1, {{"load", 9}});
  EXPECT_THAT(made.Roles(), ElementsAre(Pair(1, "load")));
}

}  // namespace
}  // namespace iket::trace
