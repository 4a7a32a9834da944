// Pages that are sound, and what is said of each way to damage one.
#include "export/page_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/base64.h"
#include "export/page.h"
#include "export/page_block_check.h"
#include "export/page_elements.h"
#include "export/page_head.h"
#include "export/synthetic_model.h"
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

std::string Page(const trace::Model& model) {
  std::string text;
  EXPECT_TRUE(WritePage(model, [&](std::string_view block) {
    text += block;
    return Result<void>();
  }));
  return text;
}

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
  AppendBase64(packed, text);
  const PageElements parts = TakeApart(page);
  const PageElement& element = *parts.Find(id);
  std::string changed = page;
  return changed.replace(element.bytes_offset, element.base64.size(), text);
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

TEST(PageCheck, ThePageBeginsAsAllDo) {
  EXPECT_TRUE(viewer::kPageBeforeData.starts_with(kPageBeginning));
  EXPECT_TRUE(LooksLikePage(std::as_bytes(std::span(Sound()))));
  EXPECT_THAT(FaultsOf(Sound()), IsEmpty());
}

TEST(PageCheck, ModelsOfAnyKindMakeSoundPages) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    for (const bool faults : {false, true}) {
      EXPECT_THAT(FaultsOf(Page(MakeSyntheticModel({.seed = seed, .faults = faults}))), IsEmpty())
          << seed;
    }
  }
}

// Policy, shell, tags, base64, checksums: nothing that the page shows can change without being
// seen. (Deflate has several ways to say the same bytes: a run of zeros repeats what is 1 or 2
// before it.)
TEST(PageCheck, EachFlippedBitIsSeen) {
  const std::string sound = Page(
      MakeSyntheticModel({.launches = 1, .ctas = 1, .warps_per_cta = 2, .events_per_warp = 8}));
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
      for (const char* id : {"block0", "links", "head"}) {
        ASSERT_EQ(PartOf(page, id), PartOf(sound, id)) << i << " of " << page.size();
      }
    }
    for (const auto& fault : faults) ASSERT_LE(fault.offset, page.size());
  }
  EXPECT_LT(same, sound.size() / 1000);
}

TEST(PageCheck, EachCutIsSeen) {
  const std::string sound = Page(
      MakeSyntheticModel({.launches = 1, .ctas = 1, .warps_per_cta = 2, .events_per_warp = 8}));
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

TEST(PageCheck, Heads) {
  const auto with = [](const std::function<void(json&)>& change) {
    return FaultsOf(WithHead(Sound(), change));
  };
  EXPECT_THAT(FaultsOf(With(Sound(), "head", "[")), ElementsAre(Says("json", "head: not JSON")));
  EXPECT_THAT(with([](json& head) { head["version"] = 9; }),
              ElementsAre(Says("version", "version 9; this iket knows 1")));
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
              ElementsAre(Says("count", "slices were read; head says 1073741824")));
  EXPECT_THAT(with([](json& head) { head["blocks"][0][1] = ~uint64_t{0}; }),
              ElementsAre(Says("column", "the column of warps ends too soon")));
  EXPECT_THAT(with([](json& head) { head["mended"] = 3; }),
              ElementsAre(Says("nesting", "3 slices overlapped")));
  EXPECT_THAT(with([](json& head) { head["devices"][0]["clocks"].clear(); }),
              Contains(Says("row", "it ran on SM ")));
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
PageHead SmallHead(uint64_t warps, uint64_t slices) {
  PageHead head;
  head.sms_of_launch = {1};
  head.types = {trace::PayloadType::kNone, trace::PayloadType::kU32, trace::PayloadType::kU64};
  head.rows = {{}, {.parent = 0}, {.marks = true}};
  head.blocks = {{0, warps, slices}};
  head.values = 1;
  return head;
}

using Columns = std::vector<std::string>;

// Columns of numbers below 128.
std::string Block(const Columns& columns) {
  std::string block;
  for (const std::string& column : columns) {
    block += static_cast<char>(column.size());
    block += column;
  }
  return block;
}

std::string Bytes(std::initializer_list<int> numbers) {
  std::string bytes;
  for (const int number : numbers) bytes += static_cast<char>(number);
  return bytes;
}

std::vector<Faults::Fault> FaultsOfBlock(const PageHead& head, const std::string& block) {
  Faults faults;
  PageBlockCheck(head, faults).Take(block, 0, 0);
  return faults.first();
}

// A warp of 100 cycles with a range in a range and a mark.
Columns SmallBlock() {
  return {Bytes({0, 0, 0, 1, 0, 0, 0, 0, 0, 100, 3}),
          Bytes({0, 1, 1, 1, 2, 1}),
          Bytes({10, 20, 50}),
          Bytes({40, 30, 0}),
          Bytes({0, 1, 2}),
          Bytes({8, 6, 1}),
          {},
          {}};
}

TEST(PageBlockCheck, SoundByHand) {
  EXPECT_THAT(FaultsOfBlock(SmallHead(1, 3), Block(SmallBlock())), IsEmpty());
}

TEST(PageBlockCheck, WhatCanBeWrongInAWarp) {
  const auto with = [](size_t column, size_t at, int number) {
    Columns columns = SmallBlock();
    columns[column].at(at) = static_cast<char>(number);
    return FaultsOfBlock(SmallHead(1, 3), Block(columns));
  };
  EXPECT_THAT(with(0, 4, 1), ElementsAre(Says("row", "block0, warp 0: it ran on SM 1 of 1")));
  EXPECT_THAT(with(0, 7, 40), ElementsAre(Says("time", "it lived for 100 times 2^40 cycles")));
  EXPECT_THAT(with(0, 9, 49), ElementsAre(Says("time", "slice 0 ends after the warp")));
  EXPECT_THAT(with(0, 10, 2),
              ElementsAre(Says("count", "2 slices were read; head says 3"),
                          Says("column", "the column of rows goes on"), Says("column", "gaps"),
                          Says("column", "durations"), Says("column", "declarations"),
                          Says("column", "payloads")));
  EXPECT_THAT(with(1, 0, 3), ElementsAre(Says("row", "row 3 of 3")));
  EXPECT_THAT(with(1, 2, 0), ElementsAre(Says("row", "row 0 is there twice")));
  EXPECT_THAT(with(3, 1, 31), ElementsAre(Says("nesting", "a slice of row 1 at 20 does not lie")));
  EXPECT_THAT(with(2, 1, 9), ElementsAre(Says("nesting", "a slice of row 1 at 9 does not lie")));
  EXPECT_THAT(with(3, 2, 1), ElementsAre(Says("time", "slice 2, a mark, has a duration")));
  EXPECT_THAT(with(4, 0, 3), ElementsAre(Says("row", "slice 0: declaration 3 of 3")));
  EXPECT_THAT(with(4, 2, 1), ElementsAre(Says("column", "the column of payloads goes on")));
  EXPECT_THAT(with(4, 0, 1), ElementsAre(Says("column", "the column of payloads ends too soon")));
}

TEST(PageBlockCheck, FlagsAndValues) {
  const auto with = [](const std::string& flags, const std::string& values) {
    Columns columns = SmallBlock();
    columns[3][1] = 31;  // beyond the one that it lies in
    columns[6] = flags;
    columns[7] = values;
    return FaultsOfBlock(SmallHead(1, 3), Block(columns));
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

TEST(PageBlockCheck, ColumnsThatAreNotThere) {
  const std::string block = Block(SmallBlock());
  for (size_t size = 0; size < block.size(); ++size) {
    EXPECT_THAT(FaultsOfBlock(SmallHead(1, 3), block.substr(0, size)), Not(IsEmpty())) << size;
  }
  EXPECT_THAT(FaultsOfBlock(SmallHead(1, 3), block + "x"),
              ElementsAre(Says("column", "bytes behind the last column")));
  PageColumn number(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
  EXPECT_EQ(number.Next(), ~uint64_t{0});
  EXPECT_FALSE(number.Next());
  PageColumn long_one(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
  EXPECT_FALSE(long_one.Next());
}

}  // namespace
}  // namespace iket::exporter
