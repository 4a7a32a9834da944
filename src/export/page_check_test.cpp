// Pages that are sound, and what is said of each way to damage one.
#include "export/page_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/base64.h"
#include "export/page.h"
#include "export/page_block_check.h"
#include "export/page_columns.h"
#include "export/page_elements.h"
#include "export/page_head.h"
#include "export/synthetic_model.h"
#include "export/testing_page.h"
#include "trace/excerpt.h"
#include "viewer/page_parts.h"

namespace iket::exporter {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using testing_page::Page;

std::vector<Faults::Fault> FaultsOf(const std::string& page) {
  Faults faults;
  CheckPage(std::as_bytes(std::span(page)), faults);
  return faults.first();
}

auto Says(std::string_view kind, std::string_view text) {
  return AllOf(Field(&Faults::Fault::kind, kind),
               Field(&Faults::Fault::text, HasSubstr(std::string(text))));
}

std::string PartOf(const std::string& page, std::string_view id) {
  const PageElements parts = TakeApart(page);
  const auto bytes = Unpack(*parts.Find(id));
  EXPECT_TRUE(bytes) << bytes.error().text;
  return *bytes;
}

// The page with one of its parts being `bytes`, as whoever means harm would make it.
std::string With(const std::string& page, std::string_view id, std::string_view bytes) {
  auto* const compressor = libdeflate_alloc_compressor(1);
  std::string packed(libdeflate_zlib_compress_bound(compressor, bytes.size()), '\0');
  packed.resize(libdeflate_zlib_compress(compressor, bytes.data(), bytes.size(), packed.data(),
                                         packed.size()));
  libdeflate_free_compressor(compressor);
  std::string text;
  AppendElement(id, bytes.size(), packed, text);
  const PageElements parts = TakeApart(page);
  const PageElement& element = *parts.Find(id);
  std::string changed = page;
  return changed.replace(element.offset, element.end() - element.offset, text);
}

std::string WithHead(const std::string& page, const std::function<void(json&)>& change) {
  json head = json::parse(PartOf(page, "head"));
  change(head);
  return With(page, "head", head.dump());
}

const std::string& Sound() {
  static const std::string kPage = Page(MakeSyntheticModel({}));
  return kPage;
}

// With a warp or two one by one, and the rest as a summary.
std::string Summarized(const SyntheticOptions& options = {}) {
  return Page(MakeSyntheticModel(options), {.most_slices = 30});
}

TEST(PageCheck, ThePageBeginsAsAllDo) {
  EXPECT_TRUE(viewer::kPageBeforeData.starts_with(kPageBeginning));
  EXPECT_TRUE(LooksLikePage(std::as_bytes(std::span(Sound()))));
  EXPECT_THAT(FaultsOf(Sound()), IsEmpty());
}

TEST(PageCheck, ModelsOfAnyKindMakeSoundPages) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    for (const bool faults : {false, true}) {
      const trace::Model model =
          MakeSyntheticModel({.seed = seed, .events_per_warp = 100, .faults = faults});
      EXPECT_THAT(FaultsOf(Page(model)), IsEmpty()) << seed;
      for (const uint64_t most : {0, 1, 300, 2000}) {
        EXPECT_THAT(FaultsOf(Page(model, {.most_slices = most})), IsEmpty()) << seed << " " << most;
      }
    }
  }
}

// Of ranges that are asked for, those that they lie in may not be.
TEST(PageCheck, PartsOfModelsMakeSoundPages) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed, .events_per_warp = 100});
    trace::ExcerptOf of;
    for (size_t i = 0; i < model.declarations.size(); ++i) {
      of.declarations.push_back(i % 3 != seed % 3);
    }
    const double begin = model.warps.begin_ns[seed % model.warps.size()];
    if (seed % 2 == 0) of.window = {begin, begin + 1000};
    EXPECT_THAT(FaultsOf(Page(model, {.detail = &of})), IsEmpty()) << seed;
    EXPECT_THAT(FaultsOf(Page(model, {.most_slices = 20, .detail = &of})), IsEmpty()) << seed;
    const trace::Model part = trace::Excerpt(model, of, "what was asked for");
    if (part.warps.size() == 0) continue;
    EXPECT_THAT(FaultsOf(Page(part)), IsEmpty()) << seed;
    EXPECT_THAT(FaultsOf(Page(part, {.most_slices = 20})), IsEmpty()) << seed;
  }
}

TEST(PageCheck, CountsWhatIsSummedUp) {
  const trace::Model model = MakeSyntheticModel({});
  Faults faults;
  const std::string page = Summarized();
  EXPECT_THAT(CheckPage(std::as_bytes(std::span(page)), faults).counts,
              ElementsAre(testing::Pair("launch", model.launches.size()),
                          testing::Pair("warp", model.warps.size()),
                          testing::Pair("range", model.ranges.size()),
                          testing::Pair("marker", model.marks.size())));
}

// Policy, shell, tags, base64, checksums: nothing that the page shows can change without being
// seen. (Deflate has several ways to say the same bytes: a run of zeros repeats what is 1 or 2
// before it.)
void ExpectEachFlipIsSeen(const std::string& sound) {
  size_t same = 0;
  const size_t data = TakeApart(sound).before.size(),
               shell = sound.find("</script>\n<script>", data);
  // Of the shell, which has one checksum, not each.
  for (size_t i = 0; i < sound.size(); i += i < data || i > shell ? 13 : 1) {
    std::string page = sound;
    page[i] = static_cast<char>(page[i] ^ 1 << i % 8);
    const auto bytes = std::as_bytes(std::span(page));
    if (!LooksLikePage(bytes)) continue;  // which CheckExport says
    const auto faults = FaultsOf(page);
    if (faults.empty()) {
      ++same;
      for (const PageElement& part : TakeApart(sound).all) {
        ASSERT_EQ(PartOf(page, part.id), PartOf(sound, part.id)) << i << " of " << page.size();
      }
    }
    for (const auto& fault : faults) ASSERT_LE(fault.offset, page.size());
  }
  EXPECT_LT(same, sound.size() / 1000);
}

constexpr SyntheticOptions kSmall = {
    .launches = 1, .ctas = 1, .warps_per_cta = 2, .events_per_warp = 8};

TEST(PageCheck, EachFlippedBitIsSeen) { ExpectEachFlipIsSeen(Page(MakeSyntheticModel(kSmall))); }

TEST(PageCheck, EachFlippedBitOfASummaryIsSeen) {
  const std::string page = Page(MakeSyntheticModel(kSmall), {.most_slices = 8});
  ASSERT_TRUE(TakeApart(page).Find("block1"));
  ExpectEachFlipIsSeen(page);
}

TEST(PageCheck, EachCutIsSeen) {
  const std::string sound = Page(MakeSyntheticModel(kSmall), {.most_slices = 8});
  for (size_t size = kPageBeginning.size(); size < sound.size(); ++size) {
    const auto faults = FaultsOf(sound.substr(0, size));
    ASSERT_FALSE(faults.empty()) << size;
  }
  EXPECT_THAT(FaultsOf(sound.substr(0, TakeApart(sound).Find("links")->bytes_offset + 2)),
              ElementsAre(Says("cut", "the part that begins here does not end"),
                          Says("cut", "the part head is missing")));
}

TEST(PageCheck, Policies) {
  const std::string policy(*PagePolicy(Sound()));
  EXPECT_FALSE(WhatPolicyAdmits(policy));
  const auto with = [&](std::string_view other) {
    std::string page = Sound();
    return FaultsOf(page.replace(kPageBeginning.size(), policy.size(), other));
  };
  const auto weak = [](std::string_view why) {
    return Contains(Says("policy", std::string("too weak: ") + std::string(why)));
  };
  EXPECT_THAT(with(""), weak("it does not begin by forbidding all"));
  EXPECT_THAT(with("default-src *"), weak("default-src admits *"));
  EXPECT_THAT(with("default-src 'none'; script-src 'unsafe-inline'"),
              weak("script-src admits 'unsafe-inline'"));
  EXPECT_THAT(with("default-src 'none'; connect-src https://a.example"),
              weak("connect-src admits https://a.example"));
  EXPECT_THAT(with("default-src 'none'; script-src data:"), weak("script-src admits data:"));
  EXPECT_THAT(with("default-src 'none'; a\r\nb 'none'"), weak("it has a directive that is none"));
  EXPECT_THAT(with("default-src 'none'; script-src 'sha256-\r\n'"), weak("script-src admits "));
  EXPECT_THAT(with("img-src data:"), weak("it does not begin by forbidding all"));
  // Strict, but not the one that the page was written with.
  EXPECT_THAT(with("default-src 'none'"), ElementsAre(Says("shell", "not as it was written")));
}

TEST(PageCheck, NamesNoAddress) {
  std::string page = Sound();
  const size_t at = page.find("</header>");
  page.insert(at, "<img src='http://a.example/x'>");
  EXPECT_THAT(FaultsOf(page), ElementsAre(Says("network", "an address"), Says("shell", "")));
  EXPECT_EQ(FaultsOf(page)[0].offset, page.find("://"));
}

TEST(PageCheck, Parts) {
  const PageElements parts = TakeApart(Sound());
  const PageElement& block = *parts.Find("block0");
  std::string page = Sound();
  page[block.bytes_offset + 5] = '!';
  auto faults = FaultsOf(page);
  EXPECT_THAT(faults, ElementsAre(Says("data", "block0: not base64 from here")));
  EXPECT_EQ(faults[0].offset, block.bytes_offset + 5);
  page = Sound();
  page[block.bytes_offset + 40] = page[block.bytes_offset + 40] == 'A' ? 'B' : 'A';
  EXPECT_THAT(FaultsOf(page), ElementsAre(Says("data", "block0: damaged")));
  page = Sound();
  const size_t end = page.find(kElementEnd, block.offset) + kElementEnd.size();
  const std::string copy = page.substr(block.offset, end - block.offset);
  EXPECT_THAT(FaultsOf(std::string(Sound()).insert(end, copy)),
              ElementsAre(Says("count", "parts with data")));
  EXPECT_THAT(FaultsOf(page.erase(block.offset, end - block.offset)),
              ElementsAre(Says("cut", "the part block0 is missing")));
}

TEST(PageCheck, Sizes) {
  const PageElements parts = TakeApart(Sound());
  const PageElement& low = *parts.Find("low0");
  const auto with = [&](std::string_view size) {
    std::string page = Sound();
    const size_t at = page.find("data-size=\"", low.offset) + 11;
    return FaultsOf(page.replace(at, page.find('"', at) - at, size));
  };
  EXPECT_THAT(with(std::to_string(*low.size)), IsEmpty());
  EXPECT_THAT(with(std::to_string(*low.size - 1)),
              ElementsAre(Says("data", "low0: it unpacks to more than data-size, ")));
  EXPECT_THAT(with(std::to_string(*low.size + 1)),
              ElementsAre(Says("data", fmt::format("low0: it unpacks to {} bytes; data-size is {}",
                                                   *low.size, *low.size + 1))));
  EXPECT_THAT(with("99999999999"), ElementsAre(Says("data", "more than ")));
  for (const char* none : {"", "-1", "1e3", " 1", "99999999999999999999"}) {
    EXPECT_THAT(with(none), ElementsAre(Says("data", "low0: its data-size is missing")));
  }
}

// Those before sizes: their data is not looked into.
TEST(PageCheck, PagesOfAnOlderIket) {
  std::string page = Sound();
  for (size_t at = page.find(" data-size="); at != page.npos; at = page.find(" data-size=", at)) {
    page.erase(at, page.find('>', at) - at);
  }
  const auto faults = FaultsOf(page);
  EXPECT_THAT(faults, ElementsAre(Says("version", "written by an older iket")));
  EXPECT_THAT(faults[0].text, HasSubstr("export it again"));
}

TEST(PageCheck, Heads) {
  const auto with = [](const std::function<void(json&)>& change) {
    return FaultsOf(WithHead(Sound(), change));
  };
  EXPECT_THAT(FaultsOf(With(Sound(), "head", "[")), ElementsAre(Says("json", "head: not JSON")));
  EXPECT_THAT(with([](json& head) { head["version"] = 9; }),
              ElementsAre(Says("version", "version 9, written by a newer iket; this one knows 2")));
  EXPECT_THAT(with([](json& head) { head["version"] = 1; }),
              ElementsAre(Says("version", "written by an older iket")));
  EXPECT_THAT(with([](json& head) { head.erase("rows"); }),
              ElementsAre(Says("key", "head lacks rows")));
  EXPECT_THAT(with([](json& head) { head["new"] = {1, 2}; }), IsEmpty());
  EXPECT_THAT(with([](json& head) { head["pid"] = "1"; }),
              ElementsAre(Says("type", "head: pid is not a whole number")));
  EXPECT_THAT(with([](json& head) { head["launches"][1]["device"] = 7; }),
              Contains(Says("row", "launch 1 is of device 7 of 1")));
  EXPECT_THAT(with([](json& head) { head["launches"][1]["last"] = -1e9; }),
              ElementsAre(Says("time", "launch 1 ends before it begins")));
  EXPECT_THAT(with([](json& head) { head["declarations"][0]["type"] = 77; }),
              ElementsAre(Says("type", "no payload type 77")));
  EXPECT_THAT(with([](json& head) { head["declarations"].clear(); }),
              ElementsAre(Says("row", "declaration "), Says("row", ""), Says("row", "")));
  EXPECT_THAT(with([](json& head) { head["rows"][1] = head["rows"][0]; }),
              Contains(Says("row", "row 1 is there twice")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0][0] = 99; }),
              ElementsAre(Says("row", "block 0 is of launch 99 of")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0][2] = 1u << 30; }),
              ElementsAre(Says("count", "rows were read; head says 1073741824")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0][1] = ~uint64_t{0}; }),
              ElementsAre(Says("column", "the column of CTA x ends too soon")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0][3] = 1; }),
              ElementsAre(Says("count", "rows were read; head says ")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0].erase(3); }),
              ElementsAre(Says("type", "block 0 is not four numbers")));
  EXPECT_THAT(with([](json& head) { head["mended"] = 3; }),
              ElementsAre(Says("nesting", "3 slices overlapped")));
  EXPECT_THAT(with([](json& head) { head["devices"][0]["clocks"].clear(); }),
              Contains(Says("row", "it ran on SM ")));
}

TEST(PageCheck, HeadsOfSummaries) {
  const std::string page = Summarized();
  ASSERT_THAT(FaultsOf(page), IsEmpty());
  const auto with = [&](const std::function<void(json&)>& change) {
    return FaultsOf(WithHead(page, [&](json& head) { change(head["summary"]); }));
  };
  const auto one_more = [&](const char* key) {
    return with([key](json& summary) { summary[key] = summary[key].get<uint64_t>() + 1; });
  };
  EXPECT_THAT(one_more("parts"), ElementsAre(Says("count", "parts of cells; ")));
  EXPECT_THAT(one_more("warps"), ElementsAre(Says("count", " warps; ")));
  EXPECT_THAT(one_more("slices"), ElementsAre(Says("count", " slices; ")));
  EXPECT_THAT(one_more("detailWarps"), ElementsAre(Says("count", " warps one by one; ")));
  EXPECT_THAT(one_more("detailSlices"), ElementsAre(Says("count", " slices one by one; ")));
  EXPECT_THAT(one_more("firstBlock"), Not(IsEmpty()));
  EXPECT_THAT(with([](json& summary) { summary["firstBlock"] = 99; }),
              Contains(Says("row", "summary: it begins with block 99 of ")));
  EXPECT_THAT(with([](json& summary) { summary["warps"] = 0; }),
              Contains(Says("count", "more is shown one by one than there is")));
  EXPECT_THAT(with([](json& summary) { summary["doubtful"] = 1u << 30; }),
              ElementsAre(Says("count", "slices are doubtful")));
  EXPECT_THAT(with([](json& summary) { summary["window"] = {1, nullptr}; }), IsEmpty());
  EXPECT_THAT(with([](json& summary) { summary["window"] = {1}; }),
              ElementsAre(Says("type", "window is not two times")));
  EXPECT_THAT(with([](json& summary) { summary.erase("arrows"); }),
              ElementsAre(Says("key", "summary lacks arrows")));
  EXPECT_THAT(FaultsOf(WithHead(page, [](json& head) { head["summary"] = 1; })),
              ElementsAre(Says("type", "head: summary is not an object")));
  EXPECT_THAT(FaultsOf(WithHead(page, [](json& head) { head.erase("summary"); })),
              Contains(Says("column", " ends too soon")));
  const size_t detail = json::parse(PartOf(page, "head"))["summary"]["detailSlices"];
  EXPECT_THAT(FaultsOf(With(page, "links", fmt::format("[0,{},1,0]", detail))),
              ElementsAre(Says("link", "and must be below")));
}

TEST(PageCheck, Links) {
  const std::string page = Page(MakeSyntheticModel({}));
  const auto with = [&](std::string_view links) { return FaultsOf(With(page, "links", links)); };
  EXPECT_THAT(with("[0,1,1,0]"), IsEmpty());
  EXPECT_THAT(with("[0,1,1]"), ElementsAre(Says("link", "the last has not four numbers")));
  EXPECT_THAT(with("[0,1,2,0]"), ElementsAre(Says("link", "number 2 of link 0 is 2")));
  EXPECT_THAT(with("[0,1,1,0,99999999,1,1,0]"),
              ElementsAre(Says("link", "is 99999999, and must be below")));
  for (const char* bad : {"", "{}", "[[1]]", "[-1]", "[0.5]", "[null]", "[0,1,1,0", "1"}) {
    EXPECT_THAT(with(bad), ElementsAre(Says("link", "links: "))) << bad;
  }
}

// One launch on one SM, rows of depth 0 and 1, marks; declarations without and with a payload.
PageHead SmallHead(uint64_t slices = 3, uint64_t rows = 3) {
  PageHead head;
  head.sms_of_launch = {1};
  head.types = {trace::PayloadType::kNone, trace::PayloadType::kU32, trace::PayloadType::kU64};
  head.rows = {{}, {.parent = 0}, {.marks = true}};
  head.blocks = {{0, 1, slices, rows}};
  head.values = 1;
  return head;
}

using Columns = std::array<std::string, PageColumns::kColumns>;

// Columns of numbers below 128.
std::string Part(const Columns& columns, PageColumns::Part part) {
  std::string bytes;
  for (size_t i = PageColumns::kFirst[part]; i < PageColumns::kFirst[part + 1]; ++i) {
    bytes += static_cast<char>(columns[i].size());
    bytes += columns[i];
  }
  return bytes;
}

std::string Bytes(std::initializer_list<int> numbers) {
  std::string bytes;
  for (const int number : numbers) bytes += static_cast<char>(number);
  return bytes;
}

struct Block {
  explicit Block(const Columns& columns)
      : shape(Part(columns, PageColumns::kShape)),
        low(Part(columns, PageColumns::kLowBytes)),
        values(Part(columns, PageColumns::kValues)) {}
  std::string shape, low, values;
};

std::vector<Faults::Fault> FaultsOfBlock(const PageHead& head, const Block& block) {
  Faults faults;
  PageBlockCheck check(head, faults);
  const bool sound = check.Take({{{block.shape, 1}, {block.low, 2}, {block.values, 3}}}, 0);
  EXPECT_EQ(sound, faults.count() == 0);
  if (sound) check.CheckSums(0);
  return faults.first();
}

// A warp or a lane of `life` cycles, below 64.
Columns SmallWarp(int life, int rows) {
  Columns columns;
  for (size_t i = PageColumns::kCtaX; i <= PageColumns::kBegin; ++i) columns[i] = Bytes({0});
  columns[PageColumns::kIndex] = Bytes({1});
  columns[PageColumns::kLife] = Bytes({2 * life});
  columns[PageColumns::kRowCount] = Bytes({rows});
  return columns;
}

// A warp of 60 cycles with a range in a range and a mark.
Columns SmallBlock() {
  Columns columns = SmallWarp(60, 3);
  columns[PageColumns::kRows] = Bytes({0, 1, 1, 1, 2, 1});
  columns[PageColumns::kGapHigh] = Bytes({0, 0, 0});
  columns[PageColumns::kGapLow] = Bytes({10, 20, 50});
  columns[PageColumns::kDurationHigh] = Bytes({0, 0});
  columns[PageColumns::kDurationLow] = Bytes({40, 30});
  columns[PageColumns::kDeclarations] = Bytes({0, 1, 2});
  columns[PageColumns::kPayloads] = Bytes({8, 6, 1});
  return columns;
}

TEST(PageBlockCheck, SoundByHand) {
  EXPECT_THAT(FaultsOfBlock(SmallHead(), Block(SmallBlock())), IsEmpty());
}

TEST(PageBlockCheck, WhatCanBeWrongInAWarp) {
  const auto with = [](size_t column, size_t at, int number) {
    Columns columns = SmallBlock();
    columns[column].at(at) = static_cast<char>(number);
    return FaultsOfBlock(SmallHead(), Block(columns));
  };
  using P = PageColumns;
  EXPECT_THAT(with(P::kCtaX, 0, 1), ElementsAre(Says("count", "a number of its place")));
  EXPECT_THAT(with(P::kSm, 0, 1), ElementsAre(Says("row", "block0, warp 0: it ran on SM 1 of 1")));
  EXPECT_THAT(with(P::kShift, 0, 40),
              ElementsAre(Says("time", "it began at 0 and lived for 60 times 2^40 cycles")));
  EXPECT_THAT(with(P::kBegin, 0, 1), ElementsAre(Says("time", "it began at 18446744073709551615")));
  EXPECT_THAT(with(P::kLife, 0, 98), ElementsAre(Says("time", "slice 0 ends after the warp")));
  EXPECT_THAT(with(P::kLife, 0, 1), ElementsAre(Says("time", "lived for 18446744073709551615")));
  EXPECT_THAT(with(P::kRowCount, 0, 2),
              ElementsAre(Says("count", "2 slices in 2 rows were read; head says 3 in 3"),
                          Says("column", "the column of rows goes on"), Says("column", "of gaps"),
                          Says("column", "declarations"), Says("column", "low bytes of gaps"),
                          Says("column", "payloads")));
  EXPECT_THAT(with(P::kRows, 0, 3), ElementsAre(Says("row", "row 3 of 3")));
  EXPECT_THAT(with(P::kRows, 2, 0), ElementsAre(Says("row", "row 0 is there twice")));
  EXPECT_THAT(with(P::kDurationLow, 1, 31),
              ElementsAre(Says("nesting", "a slice of row 1 at 20 does not lie")));
  EXPECT_THAT(with(P::kGapLow, 1, 9),
              ElementsAre(Says("nesting", "a slice of row 1 at 9 does not lie")));
  EXPECT_THAT(with(P::kGapHigh, 2, 1), ElementsAre(Says("time", "slice 2 ends after the warp")));
  EXPECT_THAT(with(P::kDeclarations, 0, 3),
              ElementsAre(Says("row", "slice 0: declaration 3 of 3")));
  EXPECT_THAT(with(P::kDeclarations, 2, 1),
              ElementsAre(Says("column", "the column of payloads goes on")));
  const auto faults = with(P::kDeclarations, 0, 1);
  EXPECT_THAT(faults, ElementsAre(Says("column", "values0, warp 0: the column of payloads ends")));
  EXPECT_EQ(faults[0].offset, 3u);
}

TEST(PageBlockCheck, FlagsAndValues) {
  const auto with = [](const std::string& flags, const std::string& values) {
    Columns columns = SmallBlock();
    columns[PageColumns::kDurationLow][1] = 31;  // beyond the one that it lies in
    columns[PageColumns::kFlags] = flags;
    columns[PageColumns::kFurther] = values;
    return FaultsOfBlock(SmallHead(), Block(columns));
  };
  const std::string crossed = Bytes({1, trace::kRangeCrossed});
  EXPECT_THAT(with(crossed, ""), IsEmpty());
  EXPECT_THAT(with(Bytes({1, trace::kRangeCut}), ""), ElementsAre(Says("nesting", "row 1 at 20")));
  EXPECT_THAT(with(Bytes({3, 1}), ""), ElementsAre(Says("row", "flags of a slice that is not")));
  EXPECT_THAT(with(Bytes({1}), ""), ElementsAre(Says("column", "the column of flags ends")));
  EXPECT_THAT(with(crossed, Bytes({2, 0, 5, 0, 0, 0, 6, 0})), IsEmpty());
  EXPECT_THAT(with(crossed, Bytes({2, 1, 5, 0})), ElementsAre(Says("row", "value 1 of 1")));
  EXPECT_THAT(with(crossed, Bytes({3, 0, 5, 0})), ElementsAre(Says("row", "a value of a slice")));
  EXPECT_THAT(with(crossed, Bytes({2, 0, 5})), ElementsAre(Says("column", "values ends too soon")));
}

// What is left of an excerpt may lie in nothing, but not across an edge.
TEST(PageBlockCheck, NestingOfAnExcerpt) {
  PageHead head = SmallHead();
  head.excerpt = true;
  Columns columns = SmallBlock();
  columns[PageColumns::kDurationLow] = Bytes({5, 30});
  EXPECT_THAT(FaultsOfBlock(head, Block(columns)), IsEmpty());
  EXPECT_THAT(FaultsOfBlock(SmallHead(), Block(columns)), ElementsAre(Says("nesting", "at 20")));
  columns[PageColumns::kDurationLow] = Bytes({15, 30});
  EXPECT_THAT(FaultsOfBlock(head, Block(columns)), ElementsAre(Says("nesting", "at 20")));
}

// A lane of 60 cycles, of 2 warps that lived for 50: a cell of two names, and one of marks.
Columns SmallLane() {
  Columns columns = SmallWarp(60, 2);
  columns[PageColumns::kMembers] = Bytes({2, 100});
  columns[PageColumns::kRows] = Bytes({0, 1, 2, 1});
  columns[PageColumns::kGapHigh] = columns[PageColumns::kDurationHigh] = Bytes({0, 0});
  columns[PageColumns::kGapLow] = Bytes({0, 31});
  columns[PageColumns::kDurationLow] = Bytes({30, 30});
  columns[PageColumns::kDeclarations] = Bytes({1, 2});
  columns[PageColumns::kCells] = Bytes({2, 0, 9, 10, 1, 3, 20, 1, 2, 4, 0});
  return columns;
}

TEST(PageBlockCheck, Lanes) {
  PageHead head = SmallHead(2, 2);
  head.summary = {.parts = 3, .warps = 2, .slices = 16};
  EXPECT_THAT(FaultsOfBlock(head, Block(SmallLane())), IsEmpty());
  const auto with = [&](size_t column, size_t at, int number) {
    Columns columns = SmallLane();
    columns[column].at(at) = static_cast<char>(number);
    return FaultsOfBlock(head, Block(columns));
  };
  using P = PageColumns;
  EXPECT_THAT(with(P::kMembers, 0, 1),
              ElementsAre(Says("time", "lane 0: 1 warps lived for 100 cycles")));
  EXPECT_THAT(with(P::kMembers, 0, 0), ElementsAre(Says("time", "0 warps lived for 100 cycles")));
  EXPECT_THAT(with(P::kMembers, 0, 3), ElementsAre(Says("count", "it says 2 warps; 3 are there")));
  EXPECT_THAT(with(P::kCells, 2, 8), ElementsAre(Says("count", "it says 16 slices; 15 are there")));
  EXPECT_THAT(with(P::kCells, 3, 21),
              ElementsAre(Says("count", "cell 0 is of another name than takes most of it")));
  EXPECT_THAT(with(P::kCells, 4, 0), ElementsAre(Says("count", "of another name"),
                                                 Says("row", "cell 0 has a name twice")));
  EXPECT_THAT(with(P::kCells, 4, 3), ElementsAre(Says("row", "slice 0: declaration 3 of 3")));
  EXPECT_THAT(with(P::kCells, 9, 0),
              ElementsAre(Says("count", "cell 1 has a part that is nothing")));
  EXPECT_THAT(with(P::kCells, 10, 1),
              ElementsAre(Says("time", "cell 1, of marks, has a duration")));
  EXPECT_THAT(with(P::kDurationLow, 0, 0), ElementsAre(Says("time", "cell 0 lasts for nothing")));
  EXPECT_THAT(with(P::kDurationLow, 1, 31), ElementsAre(Says("time", "ends after the lane")));
  EXPECT_THAT(with(P::kRows, 2, 0), ElementsAre(Says("row", "row 0 is there twice")));
  Columns columns = SmallLane();
  columns[P::kFlags] = Bytes({0, 1});
  EXPECT_THAT(FaultsOfBlock(head, Block(columns)), ElementsAre(Says("row", "flags of a slice")));
  columns = SmallLane();
  columns[P::kFurther] = Bytes({0, 0, 5, 0});
  EXPECT_THAT(FaultsOfBlock(head, Block(columns)), ElementsAre(Says("row", "a value of a slice")));
  columns = SmallLane();
  const std::string most = std::string(9, '\xff') + '\x01';
  columns[P::kCells] = Bytes({2, 0}) + most + Bytes({10, 1}) + most + Bytes({20, 1, 2, 4, 0});
  EXPECT_THAT(FaultsOfBlock(head, Block(columns)),
              ElementsAre(Says("count", "more than there can")));
}

TEST(PageBlockCheck, ColumnsThatAreNotThere) {
  for (const bool lanes : {false, true}) {
    PageHead head = lanes ? SmallHead(2, 2) : SmallHead();
    if (lanes) head.summary = {.parts = 3, .warps = 2, .slices = 16};
    const Block sound(lanes ? SmallLane() : SmallBlock());
    for (std::string Block::* part : {&Block::shape, &Block::low, &Block::values}) {
      Block block = sound;
      for (size_t size = 0; size < (sound.*part).size(); ++size) {
        block.*part = (sound.*part).substr(0, size);
        EXPECT_THAT(FaultsOfBlock(head, block), Not(IsEmpty())) << size;
      }
      block.*part = sound.*part + "x";
      EXPECT_THAT(FaultsOfBlock(head, block),
                  ElementsAre(Says("column", "bytes behind the last column")));
    }
  }
  PageColumn number(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
  EXPECT_EQ(number.Next(), ~uint64_t{0});
  EXPECT_FALSE(number.Next());
  PageColumn long_one(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
  EXPECT_FALSE(long_one.Next());
}

}  // namespace
}  // namespace iket::exporter
