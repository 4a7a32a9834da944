#include "cli/show/navigator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::cli {
namespace {

using testing::HasSubstr;
using trace::SyntheticGpu;

// Two launches, of two and of three CTAs, the second one the longer.
trace::Model Recorded() {
  SyntheticGpu gpu;
  const uint32_t kernel = gpu.AddKernel("k");
  const uint32_t push = gpu.Declare(capture::EventKind::kPush, "load");
  const uint32_t other = gpu.Declare(capture::EventKind::kPush, "store");
  const uint32_t pop = gpu.Declare(capture::EventKind::kPop, "");
  const uint32_t mark = gpu.Declare(capture::EventKind::kMark, "tick");
  for (uint32_t ctas = 2; ctas <= 3; ++ctas) {
    const uint32_t grid = gpu.Launch(kernel, {ctas, 1, 1}, {64, 1, 1});
    for (uint32_t cta = 0; cta < ctas; ++cta) {
      for (uint32_t index = 0; index < 2; ++index) {
        const auto warp = gpu.Begin(grid, cta, index, cta, index);
        for (uint32_t i = 0; i < 4 + cta; ++i) {
          gpu.Pass(200);
          gpu.Event(warp, i % 2 == 0 ? push : other);
          gpu.Pass(100);
          gpu.Event(warp, mark);
          gpu.Event(warp, pop);
        }
        gpu.Exit(warp);
      }
    }
    gpu.Pass(5000);
  }
  trace::Decoder decoder(gpu.facts());
  decoder.Add(gpu.Read());
  return decoder.Finish().value();
}

class NavigatorTest : public testing::Test {
 protected:
  std::string Screen(size_t columns = 100, size_t rows = 24) {
    const std::vector<std::string> lines = navigator_.Lines({columns, rows});
    EXPECT_EQ(lines.size(), rows);
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
  void Press(const std::string& keys) {
    for (const char key : keys) EXPECT_TRUE(navigator_.Press(key)) << key;
  }
  uint64_t Width() const { return navigator_.window().to - navigator_.window().from; }

  const trace::Model model_ = Recorded();
  Navigator navigator_{model_, ChooseCta(model_), {}};
};

TEST_F(NavigatorTest, BeginsWithTheBusiestCtaOfTheLongestLaunch) {
  EXPECT_THAT(Screen(), HasSubstr("#1, CTA 2,0,0"));
  EXPECT_THAT(Screen(), HasSubstr("CTA 3 of 3 that are kept, launch 2 of 2; "));
}

TEST_F(NavigatorTest, GoesThroughCtasAndLaunches) {
  Press("p");
  EXPECT_THAT(Screen(), HasSubstr("#1, CTA 1,0,0"));
  Press("n");
  EXPECT_THAT(Screen(), HasSubstr("CTA 2,0,0"));
  Press("n");
  EXPECT_THAT(Screen(), HasSubstr("this is the last CTA of the launch"));
  Press("[");
  EXPECT_THAT(Screen(), HasSubstr("#0, CTA 0,0,0"));
  Press("[");
  EXPECT_THAT(Screen(), HasSubstr("this is the first launch"));
  Press("]");
  EXPECT_THAT(Screen(), HasSubstr("#1, CTA 0,0,0"));
}

TEST_F(NavigatorTest, ZoomsAroundTheCursorAndBack) {
  Screen();
  const Window whole = navigator_.window();
  navigator_.Press(kKeyEnd);
  Press("+w");
  EXPECT_NEAR(static_cast<double>(Width()), static_cast<double>(whole.to - whole.from) / 4, 2);
  EXPECT_GT(navigator_.window().from, whole.from) << "the end is what is near";
  Press("a");
  EXPECT_LT(navigator_.window().to, whole.to);
  Press("d-s-");
  EXPECT_EQ(navigator_.window().from, whole.from);
  EXPECT_EQ(navigator_.window().to, whole.to);
  Press("+++0");
  EXPECT_EQ(navigator_.window().to, whole.to);
}

TEST_F(NavigatorTest, SaysWhatIsUnderTheCursor) {
  EXPECT_THAT(Screen(), HasSubstr("warp  0: no range is open"));
  for (int i = 0; i < 6; ++i) navigator_.Press(kKeyRight);
  EXPECT_THAT(Screen(), HasSubstr("load: 100 ns"));
  navigator_.Press(kKeyDown);
  EXPECT_THAT(Screen(), HasSubstr("marks: "));
  navigator_.Press(kKeyUp);
  Press("h");
  navigator_.Press(kKeyHome);
  EXPECT_THAT(Screen(), HasSubstr("no range is open"));
}

TEST_F(NavigatorTest, FindsNames) {
  Screen();
  Press("/stor");
  navigator_.Press('X');
  navigator_.Press(127);
  EXPECT_THAT(Screen(), HasSubstr("/stor\n"));
  navigator_.Press('\r');
  EXPECT_THAT(Screen(), HasSubstr("store: 100 ns"));
  navigator_.Press('\r');
  EXPECT_THAT(Screen(), HasSubstr("store: 100 ns"));
  Press("/nothing");
  navigator_.Press('\r');
  EXPECT_THAT(Screen(), HasSubstr("nothing in this row is called nothing"));
  Press("/x");
  EXPECT_TRUE(navigator_.Press(kKeyEscape)) << "ends the search alone";
}

TEST_F(NavigatorTest, ShowsMarksAndDepthsOrNot) {
  EXPECT_THAT(Screen(), HasSubstr("     marks"));
  Press("m");
  EXPECT_THAT(Screen(), testing::Not(HasSubstr("     marks")));
  Press("mt");
  EXPECT_THAT(Screen(), HasSubstr("     marks"));
}

TEST_F(NavigatorTest, HasHelpThatNamesItsKeys) {
  Press("?");
  const std::string help = Screen();
  for (const char* key :
       {"left", "+, w", "-, s", "a, d", "0  ", "n, p", "], [", "t  ", "m  ", "/ NAME", "q,"}) {
    EXPECT_THAT(help, HasSubstr(key));
  }
  Press("x");
  EXPECT_THAT(Screen(), HasSubstr("CTA 2,0,0"));
}

TEST_F(NavigatorTest, EndsWhenAsked) {
  EXPECT_FALSE(navigator_.Press('q'));
  EXPECT_FALSE(navigator_.Press(3));
  EXPECT_FALSE(navigator_.Press(kKeyEscape));
  EXPECT_FALSE(navigator_.Press(kKeyClosed));
  Press("/");
  EXPECT_FALSE(navigator_.Press(kKeyClosed));
}

TEST_F(NavigatorTest, FitsAnyScreen) {
  EXPECT_THAT(Screen(20, 5), HasSubstr("too small"));
  for (const size_t rows : {8, 9, 12, 50}) Screen(40, rows);
  Screen(300, 60);
}

// Whatever is pressed, on whatever screen: lines fit, and the window is within the CTA.
TEST_F(NavigatorTest, StandsAnyKeys) {
  std::mt19937 random(7);
  const std::string keys = "hjkl+-was d0npmt[]?/x\r";
  for (int i = 0; i < 3000; ++i) {
    const int special = static_cast<int>(random() % 12);
    const int key =
        special < 10 ? keys[random() % keys.size()] : kKeyUp + static_cast<int>(random() % 8);
    ASSERT_TRUE(navigator_.Press(key)) << key;
    if (i % 7 == 0) Screen(20 + random() % 200, 4 + random() % 60);
    ASSERT_LT(navigator_.window().from, navigator_.window().to);
  }
}

}  // namespace
}  // namespace iket::cli
