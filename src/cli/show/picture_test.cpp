#include "cli/show/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using trace::SyntheticGpu;

TEST(Text, IsAsWideAsItsCharacters) {
  EXPECT_EQ(WidthOf("abc"), 3u);
  EXPECT_EQ(WidthOf("µs"), 2u);
  EXPECT_EQ(Clipped("abcdef", 6), "abcdef");
  EXPECT_EQ(Clipped("abcdef", 4), "abc~");
  EXPECT_EQ(Clipped("µµµµ", 3), "µµ~");
  EXPECT_EQ(Clipped("abc", 0), "");
  EXPECT_EQ(Clipped("abc", 1), ".");
}

TEST(Text, HasLooksOrNone) {
  const Line line{{.text = "warp ", .strong = true}, {.text = "AA", .colour = 0}, {.text = "  "}};
  EXPECT_EQ(PlainText(line), "warp AA");
  EXPECT_EQ(ColouredText(line), "\x1b[7mwarp \x1b[0m\x1b[30;48;2;230;159;0mAA\x1b[0m  ");
}

class PictureTest : public testing::Test {
 protected:
  PictureTest() {
    const uint32_t kernel = gpu_.AddKernel("ns::gemm<float>");
    const uint32_t load = gpu_.Declare(capture::EventKind::kPush, "load\x1b[2J");
    const uint32_t mma = gpu_.Declare(capture::EventKind::kPush, "mma", capture::PayloadType::kU32);
    const uint32_t pop = gpu_.Declare(capture::EventKind::kPop, "");
    const uint32_t mark = gpu_.Declare(capture::EventKind::kMark, "tick");
    const uint32_t grid = gpu_.Launch(kernel, {1, 1, 1}, {96, 1, 1});
    const auto first = gpu_.Begin(grid, 0, 0, 2, 0);
    const auto second = gpu_.Begin(grid, 0, 1, 2, 1);
    gpu_.Pass(100);
    gpu_.Event(first, load);
    gpu_.Pass(200);
    gpu_.Event(first, pop);
    gpu_.Event(first, mma, 7);
    gpu_.Event(second, mark);
    gpu_.Pass(400);
    gpu_.Event(first, pop);
    gpu_.Pass(100);
    gpu_.Exit(second);
    gpu_.Pass(200);
    gpu_.Exit(first);
    trace::Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    model_ = decoder.Finish().value();
    cta_ = analyze::CtasOf(model_, 0).at(0);
    timeline_ = analyze::TimelineOf(model_, cta_, {});
  }

  SyntheticGpu gpu_;
  trace::Model model_;
  analyze::Cta cta_;
  analyze::CtaTimeline timeline_;
};

// A hundred columns of 10 ns; the third warp left nothing.
TEST_F(PictureTest, HasWarpsAsRowsAndTimeAcross) {
  const Picture picture(model_, cta_, timeline_);
  const Window window{timeline_.begin, timeline_.end};
  const size_t width = picture.LabelWidth(200) + 100;
  std::vector<std::string> rows;
  for (size_t row = 0; row < timeline_.rows.size(); ++row) {
    rows.push_back(PlainText(picture.Row(row, window, width)));
  }
  ASSERT_EQ(rows.size(), 4u);
  const auto times = [](size_t count, char c) { return std::string(count, c); };
  EXPECT_THAT(rows[0],
              EndsWith(" " + times(10, '.') + times(20, 'L') + times(40, 'M') + times(30, '.')));
  EXPECT_THAT(rows[1], EndsWith(" " + times(80, '.'))) << "it ended before the other";
  EXPECT_THAT(rows[2], HasSubstr("marks"));
  EXPECT_THAT(rows[2], EndsWith(" |"));
  EXPECT_THAT(rows[3], EndsWith(" " + times(100, '?')));
  EXPECT_EQ(picture.Losses(), "1 warp of which nothing is kept");
  EXPECT_THAT(picture.Title(), HasSubstr("CTA 0,0,0 on SM 2: 2 warps, 1.00 us (1,980 cycles)"));
  const std::string ruler = PlainText(picture.Ruler(window, 100));
  EXPECT_THAT(ruler, HasSubstr("|0"));
  EXPECT_THAT(ruler, HasSubstr("ns"));
}

TEST_F(PictureTest, SaysWhatIsUnderAColumn) {
  const Picture picture(model_, cta_, timeline_);
  const Window window{timeline_.begin, timeline_.end};
  const size_t width = picture.LabelWidth(200) + 100;
  EXPECT_THAT(picture.DetailOf(0, window, width, 45),
              HasSubstr("mma: 400 ns (792 cycles), from 300 ns"));
  EXPECT_THAT(picture.DetailOf(0, window, width, 45), HasSubstr("payload 7"));
  EXPECT_THAT(picture.DetailOf(0, window, width, 0), HasSubstr("no range is open"));
  EXPECT_THAT(picture.DetailOf(1, window, width, 95), HasSubstr("not there"));
  EXPECT_THAT(picture.DetailOf(2, window, width, 30), HasSubstr("tick at 300 ns"));
  EXPECT_THAT(picture.DetailOf(3, window, width, 3), HasSubstr("not known"));
}

// Names are from a file that somebody sent: none moves the cursor.
TEST_F(PictureTest, HasNoControlCharacters) {
  const Picture picture(model_, cta_, timeline_);
  const Window window{timeline_.begin, timeline_.end};
  std::string all = picture.Title() + picture.DetailOf(0, window, 60, 8);
  for (size_t row = 0; row < timeline_.rows.size(); ++row) {
    all += PlainText(picture.Row(row, window, 100));
  }
  for (const Line& line : picture.LegendLines(window, 100, 20)) all += PlainText(line);
  EXPECT_THAT(all, HasSubstr("load?[2J"));
  for (const char c : all) EXPECT_GE(static_cast<unsigned char>(c), ' ');
}

TEST_F(PictureTest, LegendHasWhatFits) {
  const Picture picture(model_, cta_, timeline_);
  const Window window{timeline_.begin, timeline_.end};
  std::vector<std::string> legend;
  for (const Line& line : picture.LegendLines(window, 100, 3)) legend.push_back(PlainText(line));
  EXPECT_THAT(legend, ElementsAre(" M   mma  1 time, 400 ns", " L   load?[2J  1 time, 200 ns",
                                  "    and 3 more"));
  EXPECT_TRUE(picture.LegendLines(window, 100, 0).empty());
}

}  // namespace
}  // namespace iket::cli
