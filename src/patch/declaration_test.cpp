// Declarations as bytes of an image: what is read, and what is said about bytes that are none.
#include "patch/declaration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::patch {
namespace {

using cubin::testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The array of docs/placeholder.md, field by field.
struct Array {
  uint32_t magic = 0x54454b49;
  uint16_t header = 16;
  uint8_t kind = 0;
  uint8_t payload = 0;
  uint32_t id = 1;
  std::string name{};
  std::optional<uint32_t> length{};  // if it is to lie

  Bytes Encode() const {
    Bytes bytes(header + name.size() + 1);
    cubin::testing::Poke(bytes, 0, magic);
    cubin::testing::Poke(bytes, 4, header);
    cubin::testing::Poke(bytes, 6, kind);
    cubin::testing::Poke(bytes, 7, payload);
    cubin::testing::Poke(bytes, 8, id);
    cubin::testing::Poke(bytes, 12, length.value_or(static_cast<uint32_t>(name.size())));
    std::memcpy(bytes.data() + header, name.data(), name.size());
    return bytes;
  }
};

// A header of 20, the name, a NUL, and the attributes.
Bytes Attributed(uint8_t kind, const std::string& name, const std::string& attributes,
                 std::optional<uint32_t> size = {}) {
  Bytes bytes = Array{.header = 20, .kind = kind, .id = 7, .name = name}.Encode();
  cubin::testing::Poke(bytes, 16, size.value_or(static_cast<uint32_t>(attributes.size())));
  const auto said = std::as_bytes(std::span(attributes));
  bytes.insert(bytes.end(), said.begin(), said.end());
  return bytes;
}
std::string Said(uint8_t what, uint8_t number, const std::string& text) {
  std::string said{static_cast<char>(what), static_cast<char>(number),
                   static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  return said + text;
}

// An image without marks of its own that gets these arrays.
Declarations Read(const std::vector<Bytes>& arrays, uint8_t type = cubin::kSymbolObject) {
  cubin::Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  for (size_t i = 0; i < arrays.size(); ++i) {
    const uint32_t section =
        image.AddSection({.name = fmt::format("declarations{}", i), .data = arrays[i]}).value();
    EXPECT_TRUE(image.AddSymbol({.name = fmt::format("$__iket_decl__{}", i),
                                 .section = section,
                                 .size = arrays[i].size(),
                                 .type = type}));
  }
  return ReadDeclarations(image);
}

TEST(ReadDeclarations, ReadsWhatACompilerLeft) {
  const Bytes bytes =
      cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/payloads.sm_90a.cubin");
  const auto image = cubin::Image::Parse(UntrustedBytes(bytes));
  ASSERT_TRUE(image);
  const Declarations read = ReadDeclarations(*image);
  EXPECT_THAT(read.problems, IsEmpty());
  std::vector<std::string> said;
  for (const Declaration& d : read.all) {
    said.push_back(fmt::format("{} {} {}", d.name, static_cast<int>(d.kind), d.payload));
  }
  EXPECT_THAT(said, ::testing::UnorderedElementsAre("round 3 5", "round 4 0", "odd 0 13",
                                                    "even 0 6", "store 1 5", " 2 0"));
}

TEST(ReadDeclarations, ReadsThoseBeforeLinking) {
  const Declarations read =
      Read({Array{.id = 7, .name = "load"}.Encode()}, cubin::kSymbolCudaObject);
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(read.all, ElementsAre(Declaration{7, EventKind::kMark, kPayloadNone, "load"}));
}

TEST(ReadDeclarations, SortsByIdAndTakesEqualOnesOnce) {
  const Array a{.kind = 3, .payload = 6, .id = 9, .name = "load"};
  const Array b{.kind = 4, .id = 2, .name = "load"};
  const Declarations read = Read({a.Encode(), b.Encode(), a.Encode()});
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(read.all, ElementsAre(Declaration{2, EventKind::kRangeEnd, kPayloadNone, "load"},
                                    Declaration{9, EventKind::kRangeBegin, 6, "load"}));
}

TEST(ReadDeclarations, TakesAnyName) {
  constexpr char kOdd[] = "tab\t, \xc3\xa9, \xff and NUL \0 too";
  const std::string odd(kOdd, sizeof kOdd - 1);
  const std::string large(100'000, 'x');
  const Declarations read =
      Read({Array{.id = 1, .name = odd}.Encode(), Array{.id = 2, .name = large}.Encode(),
            Array{.id = 0x7fffffff, .name = ""}.Encode()});
  ASSERT_EQ(read.all.size(), 3u);
  EXPECT_EQ(read.all[0].name, odd);
  EXPECT_EQ(read.all[1].name, large);
  EXPECT_EQ(read.all[2].name, "");
}

TEST(ReadDeclarations, SkipsTheRestOfALongerHeader) {
  const Declarations read = Read({Array{.header = 24, .name = "later"}.Encode()});
  ASSERT_EQ(read.all.size(), 1u);
  EXPECT_EQ(read.all[0].name, "later");
}

TEST(ReadDeclarations, ReadsAttributesAlsoThoseOfALaterVersion) {
  const std::string long_text(1000, 'x');
  const Declarations read = Read({Attributed(
      0, "tile", Said(1, 0, "m") + Said(2, 5, "n") + Said(200, 3, long_text) + Said(5, 0, ""))});
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_EQ(read.all.size(), 1u);
  EXPECT_THAT(read.all[0].attributes,
              ElementsAre(Attribute{AttributeKind::kValueName, 0, "m"},
                          Attribute{AttributeKind::kValue, 5, "n"},
                          Attribute{static_cast<AttributeKind>(200), 3, long_text},
                          Attribute{AttributeKind::kLane, 0, ""}));
}

TEST(ReadDeclarations, CountsAttributesThatDoNotFit) {
  const std::string said = Said(1, 0, "name");
  const Declarations read =
      Read({Attributed(0, "cut", said.substr(0, 5)), Attributed(0, "cut", said.substr(0, 3)),
            Attributed(0, "long", said, 0xffffffff), Attributed(0, "long", said, 9)});
  EXPECT_THAT(read.all, IsEmpty());
  EXPECT_EQ(read.problems.size(), 4u);
}

TEST(ReadDeclarations, AnEdgeIsNoEvent) {
  const std::string said = Said(7, 0, "mma") + Said(8, 0, "smem") + Said(10, 0, "gemm");
  const Declarations read =
      Read({Attributed(ring::kEdgeKind, "tma", said), Attributed(ring::kEdgeKind, "tma", said)});
  EXPECT_THAT(read.all, IsEmpty());
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(read.edges, ElementsAre(Edge{"gemm", "tma", "mma", "smem", ""}));
}

TEST(ReadDeclarations, NamesIdsOfTwoEvents) {
  const Declarations read =
      Read({Array{.id = 5, .name = "first"}.Encode(), Array{.id = 5, .name = "second"}.Encode()});
  EXPECT_EQ(read.all.size(), 2u);
  EXPECT_THAT(read.problems,
              ElementsAre(HasSubstr("\"first\" and \"second\" have the same id 0x5")));
}

TEST(ReadDeclarations, CountsWhatIsNoDeclaration) {
  Bytes cut = Array{.name = "cut"}.Encode();
  cut.resize(15);
  const std::vector<Bytes> broken = {
      Array{.magic = 0x54454b4a, .name = "x"}.Encode(),
      Array{.kind = ring::kEdgeKind + 1, .name = "x"}.Encode(),
      Array{.id = 0, .name = "x"}.Encode(),
      Array{.id = 0x80000001, .name = "x"}.Encode(),
      Array{.name = "x", .length = 3}.Encode(),
      Array{.name = "x", .length = 0xffffffff}.Encode(),
      cut,
      Bytes(1),
  };
  const Declarations read = Read(broken);
  EXPECT_THAT(read.all, IsEmpty());
  EXPECT_EQ(read.problems.size(), broken.size());
}

TEST(ReadDeclarations, OfManyProblemsCountsTheRest) {
  const Declarations read = Read(std::vector<Bytes>(1000, Bytes(1)));
  ASSERT_EQ(read.problems.size(), 21u);
  EXPECT_EQ(read.problems.back(), "and 980 more of its declarations have something wrong");
}

TEST(ReadDeclarations, RefusesAHeaderThatIsTooShort) {
  Bytes bytes = Array{.name = "x"}.Encode();
  cubin::testing::Poke<uint16_t>(bytes, 4, 12);
  EXPECT_EQ(Read({bytes}).problems.size(), 1u);
}

TEST(ReadDeclarations, SymbolsMayLie) {
  cubin::Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  const Bytes good = Array{.name = "good"}.Encode();
  const uint32_t section = image.AddSection({.name = "declarations", .data = good}).value();
  for (const auto& [value, size] : {std::pair<uint64_t, uint64_t>{1, good.size()},
                                    {~uint64_t{0}, 1},
                                    {0, ~uint64_t{0}},
                                    {good.size(), 1}}) {
    ASSERT_TRUE(
        image.AddSymbol({.name = "iket_decl", .section = section, .value = value, .size = size}));
  }
  const Declarations read = ReadDeclarations(image);
  EXPECT_THAT(read.all, IsEmpty());
  EXPECT_EQ(read.problems.size(), 4u);
}

TEST(ReadDeclarations, LooksAtObjectsOnly) {
  const Declarations read = Read({Array{.name = "x"}.Encode()}, cubin::kSymbolFunction);
  EXPECT_THAT(read.all, IsEmpty());
  EXPECT_THAT(read.problems, IsEmpty());
}

}  // namespace
}  // namespace iket::patch
