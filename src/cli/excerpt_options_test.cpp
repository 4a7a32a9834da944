#include "cli/excerpt_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "export/synthetic_model.h"

namespace iket::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParseWindow, UnitsAndOpenEnds) {
  EXPECT_EQ(*ParseWindow("5..7"), std::pair(5.0, 7.0));
  EXPECT_EQ(*ParseWindow("10us..1.5ms"), std::pair(10e3, 1.5e6));
  EXPECT_EQ(*ParseWindow("0.25s..300000000ns"), std::pair(0.25e9, 0.3e9));
  EXPECT_TRUE(std::isinf(ParseWindow("2ms..")->second));
  EXPECT_TRUE(std::isinf(ParseWindow("..2ms")->first));
  for (const char* text : {"", "..", "5", "7..5", "5..5", "a..b", "1h..2h", "1..2..3", "1us-2us"}) {
    const auto window = ParseWindow(text);
    ASSERT_FALSE(window) << text;
    EXPECT_EQ(window.error().kind, ErrorKind::kUsage);
  }
}

TEST(ParseLaunchList, NumbersAndRanges) {
  EXPECT_THAT(*ParseLaunchList("3"), ElementsAre(Pair(3, 4)));
  EXPECT_THAT(*ParseLaunchList("3,5:8,12:"),
              ElementsAre(Pair(3, 4), Pair(5, 8), Pair(12, UINT64_MAX)));
  for (const char* text : {"", ",", "3,", "8:5", "x"}) EXPECT_FALSE(ParseLaunchList(text)) << text;
}

TEST(ExcerptChoice, SaysWhatThereIs) {
  const trace::Model model = exporter::MakeSyntheticModel({.faults = false});
  const auto said = [&](const ExcerptOptions& options) {
    const auto choice = ExcerptChoice::Make(options);
    EXPECT_TRUE(choice && choice->asks());
    const auto part = choice->Of(model, "x.iketcap");
    EXPECT_FALSE(part);
    EXPECT_EQ(part.error().kind, ErrorKind::kNothing);
    return part.error().message;
  };
  EXPECT_THAT(said({.kernels = "nobody"}), HasSubstr("it has the kernels gemm, saxpy"));
  EXPECT_THAT(said({.launches = "77"}), HasSubstr("launches from #0 to #2"));
  EXPECT_THAT(said({.events = "nobody"}), HasSubstr("the names epilogue, load"));
  EXPECT_THAT(said({.cta = "99"}), HasSubstr("CTAs up to 7,0,0"));
  EXPECT_THAT(said({.cluster = "99"}), HasSubstr("clusters up to 7,0,0"));
  EXPECT_THAT(said({.sms = "99"}), HasSubstr("SMs from 0 to 3"));
  EXPECT_THAT(said({.window = "1000s.."}), HasSubstr("times from"));
  EXPECT_FALSE(ExcerptChoice::Make({})->asks());
}

TEST(ExcerptChoice, WrongOptionsAreNamed) {
  for (const auto& [options, word] : std::initializer_list<std::pair<ExcerptOptions, const char*>>{
           {{.kernels = "("}, "no regular expression"},
           {{.events = "["}, "no regular expression"},
           {{.launches = "x"}, "--launch"},
           {{.cluster = "x"}, "--cluster"},
           {{.cta = "1,2,3,4"}, "--cta"},
           {{.sms = "5-2"}, "--sm"},
           {{.window = "9..1"}, "--window"}}) {
    const auto choice = ExcerptChoice::Make(options);
    ASSERT_FALSE(choice) << word;
    EXPECT_EQ(choice.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(choice.error().message, HasSubstr(word));
  }
}

TEST(PiecesOf, AllOfTheModelOnce) {
  trace::Model model = exporter::MakeSyntheticModel({.launches = 5, .faults = false});
  for (const char* split : {"launch", "kernel", "sm"}) {
    size_t warps = 0, events = 0;
    for (const Piece& piece : PiecesOf(model, split)) {
      const trace::Model part = trace::Excerpt(model, piece.of, piece.words);
      EXPECT_NE(part.warps.size(), 0u);
      warps += part.warps.size();
      events += part.events.size();
    }
    EXPECT_EQ(warps, model.warps.size()) << split;
    EXPECT_EQ(events, model.events.size()) << split;
  }
  const auto names = [&](const char* split) {
    std::vector<std::string> all;
    for (const Piece& piece : PiecesOf(model, split)) all.push_back(piece.name);
    return all;
  };
  EXPECT_THAT(names("launch"), ElementsAre("launch0", "launch1", "launch2", "launch3", "launch4"));
  EXPECT_THAT(names("sm"), ElementsAre("sm0", "sm1", "sm2", "sm3"));
  model.strings[model.kernels[0].short_name] = "../a b";
  model.strings[model.kernels[1].short_name] = "../a/b";
  EXPECT_THAT(names("kernel"), ElementsAre("kernel-___a_b", "kernel-___a_b-2"));
}

}  // namespace
}  // namespace iket::cli
