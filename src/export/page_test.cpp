#include "export/page.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "export/page_block.h"
#include "export/synthetic_model.h"
#include "export/testing_page.h"

namespace iket::exporter {
namespace {

using testing_page::Page;

std::string Decoded(std::string_view base64) {
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : base64) {
    const auto digit = std::string_view(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                           "0123456789+/")
                           .find(c);
    if (digit == std::string_view::npos) break;
    word = word << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits);
  }
  return bytes;
}

std::string Inflated(const std::string& bytes, size_t size) {
  std::string out(size, '\0');
  auto* const inflate = libdeflate_alloc_decompressor();
  EXPECT_EQ(
      libdeflate_zlib_decompress(inflate, bytes.data(), bytes.size(), out.data(), size, nullptr),
      LIBDEFLATE_SUCCESS);
  libdeflate_free_decompressor(inflate);
  return out;
}

// The data elements, by id.
std::map<std::string, std::string> DataOf(const std::string& page) {
  std::map<std::string, std::string> data;
  const std::string open = "<script type=\"application/octet-stream;base64\" id=\"";
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const size_t id = at + open.size(), id_end = page.find('"', id);
    const size_t text = page.find('>', id_end) + 1, end = page.find("</script>", text);
    const size_t size = std::stoull(page.substr(page.find("data-size=\"", id_end) + 11));
    data[page.substr(id, id_end - id)] =
        Inflated(Decoded(std::string_view(page).substr(text, end - text)), size);
  }
  return data;
}

struct Columns {
  explicit Columns(const std::string& block) : text(block) {}
  uint64_t Next() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(text.at(at++));
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  const std::string& text;
  size_t at = 0;
};

// The columns of a part of a block.
std::vector<std::string> ColumnsOf(const std::string& part) {
  Columns all(part);
  std::vector<std::string> columns;
  while (all.at < part.size()) {
    const uint64_t size = all.Next();
    columns.push_back(part.substr(all.at, size));
    all.at += size;
  }
  return columns;
}

// The numbers of a column, and those of a column of times.
std::vector<uint64_t> NumbersOf(const std::string& column) {
  Columns all(column);
  std::vector<uint64_t> numbers;
  while (all.at < column.size()) numbers.push_back(all.Next());
  return numbers;
}
std::vector<uint64_t> TimesOf(const std::string& low, const std::string& high) {
  std::vector<uint64_t> times = NumbersOf(high);
  EXPECT_EQ(low.size(), times.size());
  for (size_t i = 0; i < times.size(); ++i) times[i] = times[i] << 8 | static_cast<uint8_t>(low[i]);
  return times;
}

// What stands in the blocks, read by a second, slower hand, is what the model has.
TEST(Page, HasEveryWarpRangeAndMark) {
  for (uint32_t seed = 1; seed < 20; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed});
    const auto data = DataOf(Page(model));
    const auto head = nlohmann::json::parse(data.at("head"));
    EXPECT_EQ(head["mended"], 0);
    uint64_t warps = 0, slices = 0, ranges = 0, cycles = 0;
    for (size_t i = 0; i < head["blocks"].size(); ++i) {
      const auto shape = ColumnsOf(data.at("block" + std::to_string(i)));
      const auto low = ColumnsOf(data.at("low" + std::to_string(i)));
      ASSERT_EQ(shape.size(), 18u);
      ASSERT_EQ(low.size(), 2u);
      EXPECT_EQ(ColumnsOf(data.at("values" + std::to_string(i))).size(), 2u);
      warps += NumbersOf(shape[3]).size();
      slices += TimesOf(low[0], shape[12]).size();
      for (const uint64_t duration : TimesOf(low[1], shape[13])) {
        cycles += duration;
        ++ranges;
      }
      EXPECT_EQ(head["blocks"][i][1], NumbersOf(shape[3]).size());
    }
    uint64_t expected = 0;
    for (size_t i = 0; i < model.ranges.size(); ++i) {
      expected += model.ranges.end_cycles[i] - model.ranges.begin_cycles[i];
    }
    EXPECT_EQ(warps, model.warps.size());
    EXPECT_EQ(slices, model.ranges.size() + model.marks.size());
    EXPECT_EQ(ranges, model.ranges.size());
    EXPECT_EQ(cycles, expected);
  }
}

// What is one by one and what cells count is all that there is, name by name.
TEST(Page, HasNothingLessWhereMostOfItIsASummary) {
  for (uint32_t seed = 1; seed < 20; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed, .events_per_warp = 200});
    std::map<uint64_t, uint64_t> expected, found;
    for (const uint32_t declaration : model.ranges.declaration) ++expected[declaration];
    for (const uint32_t event : model.marks.event) ++expected[model.events.declaration[event]];
    std::string note;
    const uint64_t most = seed % 3 * 1000;
    const auto data = DataOf(Page(
        model, {.most_slices = most, .note = [&note](const std::string& text) { note = text; }}));
    const auto head = nlohmann::json::parse(data.at("head"));
    const auto& summary = head["summary"];
    EXPECT_EQ(head["mended"], 0);
    EXPECT_LE(summary["detailSlices"], most);
    EXPECT_EQ(summary["slices"], model.ranges.size() + model.marks.size());
    EXPECT_NE(note.find("the rest is a summary"), std::string::npos);
    uint64_t warps = 0;
    for (size_t i = 0; i < head["blocks"].size(); ++i) {
      const auto shape = ColumnsOf(data.at("block" + std::to_string(i)));
      const bool lanes = i >= summary["firstBlock"];
      if (!lanes) {
        warps += head["blocks"][i][1].get<uint64_t>();
        for (const uint64_t declaration : NumbersOf(shape[14])) ++found[declaration];
        continue;
      }
      const std::vector<uint64_t> members = NumbersOf(shape[16]), cells = NumbersOf(shape[17]);
      for (size_t at = 0; at < members.size(); at += 2) warps += members[at];
      for (size_t at = 0; at < cells.size();) {
        for (uint64_t parts = cells[at++]; parts > 0; --parts, at += 3) {
          found[cells[at]] += cells[at + 1];
        }
      }
    }
    std::erase_if(found, [](const auto& row) { return row.second == 0; });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(warps, model.warps.size());
  }
}

TEST(Page, HasNoSummaryWhereAllFits) {
  const trace::Model model = MakeSyntheticModel({});
  const uint64_t slices = model.ranges.size() + model.marks.size();
  bool said = false;
  const PageOptions options = {.most_slices = slices, .note = [&said](auto&) { said = true; }};
  EXPECT_EQ(Page(model, options), Page(model));
  EXPECT_FALSE(said);
}

TEST(Page, NamesCannotEndAnElement) {
  trace::Model model = MakeSyntheticModel({});
  const size_t before = DataOf(Page(model)).size();
  for (std::string& text : model.strings) text.insert(0, "</script><!--<script>\xff");
  const std::string page = Page(model);
  EXPECT_EQ(page.find("</script><!--"), std::string::npos);
  const auto data = DataOf(page);
  EXPECT_EQ(data.size(), before);
  const auto head = nlohmann::json::parse(data.at("head"));
  EXPECT_EQ(head["command"].get<std::string>().find("</script><!--<script>\xef\xbf\xbd"), 0u);
}

TEST(Page, AsksForNoNetworkAndRunsNothingElse) {
  const std::string page = Page(MakeSyntheticModel({}));
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-"), std::string::npos);
  EXPECT_EQ(page.find("innerHTML"), std::string::npos);
  EXPECT_EQ(page.find("eval("), std::string::npos);
}

TEST(Page, TheSameModelGivesTheSameBytes) {
  EXPECT_EQ(Page(MakeSyntheticModel({})), Page(MakeSyntheticModel({})));
}

TEST(Page, AWarpThatLivesLongerThanAColumnHoldsIsInCoarserUnits) {
  trace::Model model = MakeSyntheticModel({.launches = 1, .faults = false});
  model.warps.end_cycles[0] = model.warps.begin_cycles[0] + (uint64_t{5} << 33);
  const PageDetail detail(model, ~uint64_t{0}, nullptr);
  PageBlocks blocks(model, detail);
  blocks.Add(0);
  EXPECT_EQ(blocks.mended(), 0u);
  EXPECT_GT(blocks.slices(), 0u);
}

}  // namespace
}  // namespace iket::exporter
