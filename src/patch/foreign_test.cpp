// Declarations of NVIDIA's contract: laid out by hand, and as its front ends wrote them.
#include "patch/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cubin/testing.h"

namespace iket::patch {
namespace {

using cubin::testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Event {
  std::string name = "x";
  uint32_t method = 3;
  uint32_t id = 1;
  uint32_t payload = 0;
  uint32_t position = 0;

  Bytes Encode() const {
    Bytes bytes(60);
    const uint32_t words[] = {60, id, method, payload, position, 0};
    for (size_t i = 0; i < std::size(words); ++i) {
      cubin::testing::Poke<uint32_t>(bytes, 4 * i, words[i]);
    }
    std::memcpy(bytes.data() + 28, name.data(), std::min<size_t>(name.size(), 32));
    return bytes;
  }
};

cubin::Image With(const std::vector<std::pair<std::string, Bytes>>& objects) {
  cubin::Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  for (const auto& [name, bytes] : objects) {
    const uint32_t section = image.AddSection({.name = ".data." + name, .data = bytes}).value();
    EXPECT_TRUE(image.AddSymbol({.name = name, .section = section, .size = bytes.size()}));
  }
  return image;
}

ForeignMarks Find(const std::vector<Bytes>& events) {
  std::vector<std::pair<std::string, Bytes>> objects;
  for (size_t i = 0; i < events.size(); ++i) {
    objects.emplace_back(fmt::format("__iket_evt_decl_{}_attrs", i), events[i]);
  }
  return FindForeignMarks(With(objects));
}

std::vector<std::string> NamesOf(const ForeignMarks& marks) {
  std::vector<std::string> names;
  for (const ForeignEvent& event : marks.events) names.push_back(event.name);
  return names;
}

cubin::Image Load(const std::string& file) {
  const Bytes bytes = cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/" + file);
  return cubin::Image::Parse(UntrustedBytes(bytes)).value();
}

TEST(FindForeignMarks, FindsNoneInOrdinaryAndInOurImages) {
  EXPECT_FALSE(Find({}).any());
  EXPECT_FALSE(FindForeignMarks(Load("patch/plain.sm_90a.cubin")).any());
}

TEST(FindForeignMarks, NamesEventsAndTheirMethod) {
  const ForeignMarks marks =
      Find({Event{.name = "mma", .id = 2}.Encode(), Event{.name = "load"}.Encode()});
  EXPECT_EQ(marks.malformed, 0u);
  EXPECT_THAT(NamesOf(marks), ElementsAre("load", "mma"));
  EXPECT_EQ(MethodName(marks.method()), "NativeDump");
  EXPECT_EQ(marks.refusal, "");
  ASSERT_NE(marks.Find(2), nullptr);
  EXPECT_EQ(marks.Find(2)->name, "mma");
  EXPECT_EQ(marks.Find(3), nullptr);
}

TEST(FindForeignMarks, ReadsANameThatFillsItsField) {
  const std::string name(32, 'n');
  EXPECT_THAT(NamesOf(Find({Event{.name = name + "more"}.Encode()})), ElementsAre(name));
}

// cuda-oxide's: the key of the string table where the name would be.
TEST(FindForeignMarks, ReadsLongNamesFromTheStringTable) {
  const std::string name(100, 'n');
  Bytes text(name.size() + 1);
  std::memcpy(text.data(), name.data(), name.size());
  const ForeignMarks marks = FindForeignMarks(
      With({{"__iket_evt_decl_id_1_attrs", Event{.name = "h0123456789abcdef"}.Encode()},
            {"__iket_string_decl_evt_h0123456789abcdef_str", text}}));
  EXPECT_THAT(NamesOf(marks), ElementsAre(name));
}

TEST(FindForeignMarks, CountsWhatIsMalformed) {
  Bytes other_size = Event().Encode();
  cubin::testing::Poke<uint32_t>(other_size, 0, 64);
  Bytes cut = Event().Encode();
  cut.resize(59);
  const ForeignMarks marks =
      Find({other_size, cut, Bytes(1), Event{.position = 5}.Encode(), Event().Encode()});
  EXPECT_EQ(marks.events.size(), 1u);
  EXPECT_EQ(marks.malformed, 4u);
  EXPECT_TRUE(marks.any());
}

TEST(FindForeignMarks, RefusesByName) {
  const auto refusal = [](std::vector<Event> events) {
    std::vector<Bytes> encoded;
    for (const Event& event : events) encoded.push_back(event.Encode());
    return Find(encoded).refusal;
  };
  EXPECT_THAT(refusal({{.name = "tail", .id = 32}}),
              HasSubstr("event \"tail\" (id 32) does not fit the 5 bits"));
  EXPECT_THAT(refusal({{.method = 4}}), HasSubstr("UTraceEvent"));
  EXPECT_THAT(refusal({{.method = 77}}), HasSubstr("method 77"));
  EXPECT_THAT(refusal({{.method = 5, .id = 4096}}), HasSubstr("an id that no event may have"));
  EXPECT_THAT(refusal({{.id = 31}}), HasSubstr("an id that no event may have"));
  EXPECT_THAT(refusal({{.payload = 9}}), HasSubstr("a payload of type 9"));
  EXPECT_THAT(refusal({{.method = 3, .id = 1}, {.method = 5, .id = 64}}),
              HasSubstr("different methods, NativeDump and ExtendedNativeDump"));
  EXPECT_THAT(refusal({{.name = "a"}, {.name = "b"}}), HasSubstr("the same id 1"));
  EXPECT_EQ(refusal({{.method = 5, .id = 4095}}), "");
  EXPECT_EQ(refusal({{}, {}}), "") << "two units declare the same event";
}

TEST(FindForeignMarks, TriggersThatAUserNames) {
  const cubin::Image plain = With({});
  const ForeignMarks marks = FindForeignMarks(plain, {{3, "tile"}, {4, "done"}});
  EXPECT_THAT(NamesOf(marks), ElementsAre("tile", "done"));
  EXPECT_TRUE(IsBare(marks.method()));
  // An image that declares its events means others by its masks.
  const cubin::Image declared = With({{"__iket_evt_decl_x_attrs", Event().Encode()}});
  EXPECT_THAT(NamesOf(FindForeignMarks(declared, {{3, "tile"}})), ElementsAre("x"));
}

// What CuTe DSL 4.8.1 declares, by run-iket's own reading of it (iket.data.json).
TEST(FindForeignMarks, OfCuteDsl) {
  const ForeignMarks marks = FindForeignMarks(Load("foreign/ranges.cubin"));
  EXPECT_THAT(NamesOf(marks), ElementsAre("life", "outer", "role0", "produce", "span", "tile",
                                          "load", "mma", "odd_lane", "even_lane"));
  EXPECT_EQ(marks.malformed, 0u);
  ASSERT_TRUE(marks.meta);
  EXPECT_EQ(marks.meta->minor, 5u);
  EXPECT_EQ(marks.meta->max_event_id, 31u);
  EXPECT_EQ(marks.Find(6)->position, ForeignPosition::kRangeStartEnd);
  EXPECT_EQ(marks.Find(6)->range, 1899658441u);
  EXPECT_EQ(marks.Find(6)->payload, 5);
  EXPECT_EQ(marks.ranges.size(), 7u);
}

// TileLang counts its events where the minor version belongs, and makes ids of ranges by CRC-32.
TEST(FindForeignMarks, OfTileLang) {
  const ForeignMarks marks = FindForeignMarks(Load("foreign/tilelang.cubin"));
  EXPECT_THAT(NamesOf(marks), ElementsAre("block", "enter", "body", "value", "leave"));
  EXPECT_EQ(marks.Find(1)->range, 2199623458u);
  EXPECT_EQ(marks.refusal, "");
}

TEST(DeclarationsOf, KeepTheIdsOfTheMetadata) {
  const ForeignMarks marks = FindForeignMarks(Load("foreign/ranges.cubin"));
  const std::vector<Declaration> declarations = DeclarationsOf(marks);
  ASSERT_EQ(declarations.size(), marks.events.size() + 1);
  std::map<uint32_t, EventKind> kinds;
  for (const auto& [id, recorded] : RecordedIds(declarations)) {
    for (const Declaration& declaration : declarations) {
      if (declaration.id == recorded) kinds[id] = declaration.kind;
    }
    EXPECT_EQ(recorded >> 31, 0u);
  }
  const std::map<uint32_t, EventKind> expected = {
      {1, EventKind::kTokenEither}, {2, EventKind::kPush},        {3, EventKind::kMark},
      {4, EventKind::kPush},        {5, EventKind::kTokenEither}, {6, EventKind::kTokenEither},
      {7, EventKind::kPush},        {8, EventKind::kPush},        {9, EventKind::kMark},
      {10, EventKind::kMark},       {31, EventKind::kPop}};
  EXPECT_EQ(kinds, expected);
}

}  // namespace
}  // namespace iket::patch
