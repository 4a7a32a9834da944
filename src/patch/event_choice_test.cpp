// Sites of events that nobody wants: left as they were, byte for byte, and the rest recorded as
// ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "cubin/testing.h"
#include "patch/analysis.h"
#include "patch/patch.h"
#include "patch/testing_flips.h"
#include "patch/testing_warp.h"
#include "sass/encode.h"
#include "sass/operands.h"

namespace iket::patch {
namespace {

using cubin::Image;
using cubin::testing::Bytes;
using sass::Instruction;
using ::testing::ElementsAre;
using Code = std::vector<Instruction>;
using Names = std::set<std::string>;

Image Parse(const Bytes& bytes) {
  auto image = Image::Parse(UntrustedBytes(bytes));
  EXPECT_TRUE(image) << image.error().message;
  return std::move(image).value();
}
Image Load(const std::string& file) {
  return Parse(cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/" + file));
}
uint32_t SectionOf(const Image& image, const std::string& function) {
  return image.FindSection(".text." + function).value();
}
Code CodeOf(const Image& image, const std::string& function) {
  return DecodeCode(image.sections()[SectionOf(image, function)].data).value();
}
Options All() { return {.layout = ring::MakeLayout(32 << 10, 132).value(), .first_kernel = 1000}; }
Options Only(const Names& names) {
  Options options = All();
  options.wants_event = [names](const std::string& name) { return names.contains(name); };
  return options;
}
Patched Patch(const Image& image, const Options& options) {
  auto patched = PatchImage(image, options);
  EXPECT_TRUE(patched) << patched.error().message;
  return std::move(patched).value();
}
const FunctionReport& Named(const ImageReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.functions, name, &FunctionReport::name);
  EXPECT_NE(found, report.functions.end()) << name;
  return *found;
}

// The words of each site, by the offset of its last slot: found by site.cpp.
std::map<uint64_t, std::vector<size_t>> WordsOfSites(const Code& code) {
  std::map<uint64_t, std::vector<size_t>> words;
  const uint64_t entry[] = {0};
  for (const Site& site : FindSites(code, entry, sass::Generation::kHopper).all) {
    std::vector<size_t>& of_site = words[uint64_t{site.advance} * sass::kInstructionBytes];
    for (size_t i = std::min(site.address, site.compare); i <= site.advance; ++i) {
      of_site.push_back(i);
    }
  }
  return words;
}

struct Case {
  std::string file;
  std::map<std::string, size_t> sites;  // by name; of pops under ""
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.file; }

class EventChoice : public ::testing::TestWithParam<Case> {
 protected:
  // All sets of names.
  std::vector<Names> Subsets() const {
    std::vector<std::string> names;
    for (const auto& [name, sites] : GetParam().sites) {
      if (!name.empty()) names.push_back(name);
    }
    std::vector<Names> subsets;
    for (uint32_t bits = 0; bits < 1u << names.size(); ++bits) {
      Names& subset = subsets.emplace_back();
      for (size_t i = 0; i < names.size(); ++i) {
        if ((bits >> i & 1) != 0) subset.insert(names[i]);
      }
    }
    return subsets;
  }
  const Image image_ = Load(GetParam().file);
};

INSTANTIATE_TEST_SUITE_P(
    Cubins, EventChoice,
    ::testing::Values(Case{"plain.sm_90a.cubin", {{"plain: all", 2}, {"loaded", 1}}},
                      Case{"payloads.sm_90a.cubin",
                           {{"round", 2}, {"odd", 1}, {"even", 1}, {"store", 1}, {"", 1}}},
                      Case{"exits.sm_90a.cubin",
                           {{"begin", 1}, {"inside", 1}, {"negative", 1}, {"positive", 1}}},
                      Case{"calls.sm_90a.linked.cubin", {{"marked", 2}, {"calls", 1}}}),
    [](const auto& of) { return of.param.file.substr(0, of.param.file.find('.')); });

TEST_P(EventChoice, EveryIdShowsInTheCode) {
  const ImageReport report = Inspect(image_).value();
  std::map<uint32_t, std::string> name_of;
  for (const Declaration& declaration : report.declarations) {
    name_of[declaration.id] = declaration.name;
  }
  std::map<std::string, size_t> sites;
  for (const FunctionReport& function : report.functions) {
    for (const SiteReport& site : function.sites) {
      ASSERT_TRUE(name_of.contains(site.event)) << function.name << " at " << site.offset;
      ++sites[name_of[site.event]];
    }
  }
  EXPECT_EQ(sites, GetParam().sites);
}

TEST_P(EventChoice, WhoWantsAllGetsAll) {
  Options options = All();
  options.wants_event = [](const std::string& name) {
    EXPECT_NE(name, "") << "a pop has no name to ask about";
    return true;
  };
  EXPECT_EQ(Patch(image_, options).image, Patch(image_, All()).image);
}

TEST_P(EventChoice, WhoWantsNothingGetsTheImageAsItIs) {
  const Patched patched = Patch(image_, Only({}));
  EXPECT_FALSE(patched.image);
  for (const FunctionReport& function : patched.report.functions) {
    EXPECT_EQ(function.sites_left_out, function.sites.size());
    EXPECT_FALSE(function.has_trampoline);
    EXPECT_EQ(function.refusal, "");
  }
  for (const Declaration& declaration : patched.report.declarations) {
    EXPECT_EQ(declaration.left_out, declaration.kind != EventKind::kPop);
  }
}

// Sites that stay have all their bytes; those that record are what they are without a choice, but
// for stalls, which depend on where the next recorded site is.
TEST_P(EventChoice, SitesAreWholeOrAsTheyWere) {
  const Patched all = Patch(image_, All());
  const Image everything = Parse(all.image.value());
  for (const Names& names : Subsets()) {
    SCOPED_TRACE(::testing::PrintToString(names));
    const Patched patched = Patch(image_, Only(names));
    const Image some = patched.image ? Parse(*patched.image) : image_;
    for (const FunctionReport& function : patched.report.functions) {
      SCOPED_TRACE(function.name);
      const Code before = CodeOf(image_, function.name), after = CodeOf(some, function.name);
      const Code full = CodeOf(everything, function.name);
      const auto words = WordsOfSites(before);
      ASSERT_EQ(words.size(), function.sites.size());
      uint32_t left_out = 0;
      for (const SiteReport& site : function.sites) {
        left_out += site.left_out ? 1 : 0;
        for (const size_t i : words.at(site.offset)) {
          if (site.left_out) {
            EXPECT_EQ(after[i], before[i]) << i;
          } else {
            EXPECT_EQ(after[i].WithControl({}), full[i].WithControl({})) << i;
          }
        }
      }
      EXPECT_EQ(function.sites_left_out, left_out);
      if (!function.has_trampoline && function.is_kernel) {
        EXPECT_EQ(after, before);
      }
    }
  }
}

// Along every path: the records of a walk with a choice are those without it, but for the events
// that nobody wants; a pop is recorded where a push of the image is wanted.
TEST_P(EventChoice, WarpsRecordWhatIsWantedAndNothingElse) {
  std::map<uint32_t, std::string> name_of;
  const Patched all = Patch(image_, All());
  const Image everything = Parse(all.image.value());
  std::set<uint32_t> nests;
  for (const Declaration& declaration : all.report.declarations) {
    name_of[declaration.id] = declaration.name;
    const EventKind kind = declaration.kind;
    if (kind == EventKind::kPush || kind == EventKind::kPop) nests.insert(declaration.id);
  }
  const auto ids = [](const testing::Warp& warp) {
    std::vector<uint32_t> events;
    for (const testing::RingStore& store : warp.ring_stores) {
      if (store.words[1] >> 31 == 0) events.push_back(store.words[1]);
    }
    return events;
  };
  for (const Names& names : Subsets()) {
    SCOPED_TRACE(::testing::PrintToString(names));
    const Patched patched = Patch(image_, Only(names));
    if (!patched.image) continue;
    const Image some = Parse(*patched.image);
    const bool push_wanted =
        std::ranges::any_of(nests, [&](uint32_t id) { return names.contains(name_of.at(id)); });
    for (const FunctionReport& function : patched.report.functions) {
      if (!function.has_trampoline) continue;
      SCOPED_TRACE(function.name);
      for (uint32_t path = 0; path < 64; ++path) {
        const auto takes = [path](uint32_t n) { return (path >> n % 6 & 1) != 0; };
        testing::Warp full, chosen;
        full.Walk(CodeOf(everything, function.name), takes);
        chosen.Walk(CodeOf(some, function.name), takes);
        EXPECT_EQ(chosen.exited, full.exited);
        EXPECT_TRUE(chosen.hazards.empty()) << chosen.hazards.front();
        std::vector<uint32_t> expected;
        std::ranges::copy_if(ids(full), std::back_inserter(expected), [&](uint32_t id) {
          return nests.contains(id) ? push_wanted : names.contains(name_of.at(id));
        });
        ASSERT_EQ(ids(chosen), expected) << path;
        EXPECT_EQ(full.slots, 0u);
        EXPECT_EQ(ids(full).size(), expected.size() + chosen.slots) << "dormant slots";
      }
    }
  }
}

constexpr char kPayloads[] = "payloads.sm_90a.cubin", kCalls[] = "calls.sm_90a.linked.cubin";

TEST(EventChoices, PushesAndPopsGoTogetherOrStay) {
  const Image image = Load(kPayloads);
  const auto left_out = [&](const Names& names) {
    return Named(Patch(image, Only(names)).report, "payloads").sites_left_out;
  };
  EXPECT_EQ(left_out({"round"}), 4u) << "odd, even, store and its pop";
  EXPECT_EQ(left_out({"store"}), 4u) << "both ends of round, odd, even";
  EXPECT_EQ(left_out({"odd", "store"}), 3u);
}

// What is found in a row or category is wanted as if it were found in the name; pairs of clocks are
// wanted if anything is.
TEST(EventChoices, RowsAndCategoriesAreChosenLikeNames) {
  const Image image = Load("values.sm_90a.cubin");
  const auto chosen = [&](const Names& names) {
    const Patched patched = Patch(image, Only(names));
    std::map<uint32_t, const Declaration*> declared;
    for (const Declaration& declaration : patched.report.declarations) {
      declared.emplace(declaration.id, &declaration);
    }
    std::set<std::string> kept;
    for (const SiteReport& site : Named(patched.report, "Values").sites) {
      if (!site.left_out) kept.insert(declared.at(site.event)->name);
    }
    return kept;
  };
  EXPECT_THAT(chosen({"tile"}), ElementsAre("sync", "tile"));
  EXPECT_THAT(chosen({"all"}), ElementsAre("said", "sync")) << "a group";
  EXPECT_THAT(chosen({"tma"}), ElementsAre("copy", "sync")) << "a lane";
  EXPECT_THAT(chosen({"io"}), ElementsAre("copy", "sync")) << "a category";
  EXPECT_THAT(chosen({"sync"}), ::testing::IsEmpty());
  EXPECT_THAT(chosen({""}), ::testing::IsEmpty());
}

// `payloads` with the id of one site moved from another register.
Image WithAnUnknownSite(uint32_t id) {
  Image image = Load(kPayloads);
  Code code = CodeOf(image, "payloads");
  for (Instruction& instruction : code) {
    if (sass::MovedConstant(instruction) != id) continue;
    constexpr uint64_t kForm = uint64_t{7} << 9;
    constexpr uint64_t kMov = 0x202;  // MOV R, R
    instruction = {kMov | (instruction.low & 0xfff000 & ~kForm) | uint64_t{9} << 32,
                   (instruction.high & ~uint64_t{0x1ff}) | 15u << 8};
  }
  const auto bytes = std::as_bytes(std::span(code));
  EXPECT_TRUE(
      image.SetSectionData(SectionOf(image, "payloads"), Bytes(bytes.begin(), bytes.end())));
  return image;
}

TEST(EventChoices, WhatDoesNotShowItsEventIsRecordedAndSoArePushesThen) {
  const ImageReport before = Inspect(Load(kPayloads)).value();
  const auto odd = std::ranges::find(before.declarations, "odd", &Declaration::name);
  const Patched patched = Patch(WithAnUnknownSite(odd->id), Only({"round"}));
  std::map<uint32_t, bool> left_out;
  for (const SiteReport& site : Named(patched.report, "payloads").sites) {
    left_out[site.event] = site.left_out;
  }
  ASSERT_TRUE(left_out.contains(0));
  EXPECT_FALSE(left_out[0]);
  for (const Declaration& declaration : before.declarations) {
    const bool stays = declaration.name == "even";
    if (declaration.name == "odd") continue;
    EXPECT_EQ(left_out[declaration.id], stays) << declaration.name;
  }
  // Who reads the records is told of all.
  for (const Declaration& declaration : patched.report.declarations) {
    const bool wanted = declaration.name == "round" || declaration.kind == EventKind::kPop;
    EXPECT_EQ(declaration.left_out, !wanted) << declaration.name;
  }
}

// A record with the id of two names may be of either: it is wanted if one is, and so are pops then.
TEST(EventChoices, TwoNamesWithOneIdAreWantedTogether) {
  Image image = Load(kPayloads);
  const ImageReport before = Inspect(image).value();
  const auto store = std::ranges::find(before.declarations, "store", &Declaration::name);
  const auto symbol = std::ranges::find_if(image.symbols(), [](const cubin::Symbol& one) {
    return one.name.find("iket_decl") != std::string_view::npos && one.has_section;
  });
  ASSERT_NE(symbol, image.symbols().end());
  const auto type = symbol->type;
  const uint32_t section = symbol->section;
  const auto old = image.sections()[section].data;
  Bytes data(old.begin(), old.end());
  const uint64_t at = data.size();
  const auto put = [&data](uint32_t word) {
    for (int i = 0; i < 4; ++i) data.push_back(static_cast<std::byte>(word >> 8 * i));
  };
  put(0x54454b49);
  put(16 | uint32_t{store->payload} << 24);  // a mark
  put(store->id);
  put(3);
  put('a' | 'n' << 8 | 'y' << 16);
  const uint64_t size = data.size() - at;
  ASSERT_TRUE(image.SetSectionData(section, std::move(data)));
  ASSERT_TRUE(image.AddSymbol(
      {.name = "$iket_decl$any", .section = section, .value = at, .size = size, .type = type}));
  for (const char* name : {"any", "store"}) {
    const Patched patched = Patch(image, Only({name}));
    EXPECT_EQ(patched.report.problems.size(), 1u);
    EXPECT_EQ(Named(patched.report, "payloads").sites_left_out, 4u)
        << "all but the push and its pop";
    for (const Declaration& declaration : patched.report.declarations) {
      if (declaration.id == store->id) {
        EXPECT_FALSE(declaration.left_out) << declaration.name;
      }
    }
  }
  EXPECT_FALSE(Patch(image, Only({})).image);
}

TEST(EventChoices, AKernelWithoutWantedSitesIsPatchedForWhatItCalls) {
  const Image image = Load(kCalls);
  const Patched of_function = Patch(image, Only({"marked"}));
  EXPECT_TRUE(Named(of_function.report, "calls").has_trampoline);
  EXPECT_EQ(Named(of_function.report, "calls").sites_left_out, 1u);
  EXPECT_TRUE(Named(of_function.report, "calls_unmarked").has_trampoline);

  const Patched of_kernel = Patch(image, Only({"calls"}));
  const Image after = Parse(of_kernel.image.value());
  EXPECT_TRUE(Named(of_kernel.report, "calls").has_trampoline);
  EXPECT_EQ(CodeOf(after, "_Z6Markedf"), CodeOf(image, "_Z6Markedf"));
  EXPECT_EQ(CodeOf(after, "calls_unmarked"), CodeOf(image, "calls_unmarked"))
      << "it reaches no site that is wanted";
}

TEST(EventChoices, WarpsOfAKernelWithoutWantedSitesAreThereForWhoAsks) {
  const Image image = Load(kPayloads);
  Options options = Only({});
  options.choose = [](const std::string&) { return Choice{.unmarked = true}; };
  const Patched patched = Patch(image, options);
  const FunctionReport& kernel = Named(patched.report, "payloads");
  EXPECT_TRUE(kernel.has_trampoline);
  EXPECT_EQ(kernel.sites_left_out, kernel.sites.size());
  const Code before = CodeOf(image, "payloads");
  const Code after = CodeOf(Parse(patched.image.value()), "payloads");
  for (const auto& [offset, words] : WordsOfSites(before)) {
    for (const size_t i : words) EXPECT_EQ(after[i], before[i]) << i;
  }
}

// Nobody is told that what nobody wants could not be had.
TEST(EventChoices, WhatNobodyWantsIsNotRefused) {
  Image image = Load("plain.sm_90a.cubin");
  Code code = CodeOf(image, "plain");
  const auto padding = std::ranges::find(code, uint32_t{sass::kOpNop}, &Instruction::opcode);
  ASSERT_NE(padding, code.end());
  *padding = sass::R2ur(sass::Generation::kHopper, 0, 0, {.stall = 13});
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(SectionOf(image, "plain"), Bytes(bytes.begin(), bytes.end())));
  EXPECT_NE(Named(Patch(image, All()).report, "plain").refusal, "");
  EXPECT_EQ(Named(Patch(image, Only({})).report, "plain").refusal, "");
  Options warps = Only({});
  warps.choose = [](const std::string&) { return Choice{.unmarked = true}; };
  EXPECT_NE(Named(Patch(image, warps).report, "plain").refusal, "") << "its warps were wanted";

  const Image unknown = Load("plain.sm_90a.O0.cubin");
  EXPECT_NE(Named(Patch(unknown, Only({})).report, "plain").refusal, "")
      << "what is not understood may be anything";
}

TEST(EventChoices, SurviveFlippedBits) {
  EXPECT_GT(testing::PatchFlippedBits({kPayloads, kCalls}, 2, Only({"round", "calls"})), 100u);
}

}  // namespace
}  // namespace iket::patch
