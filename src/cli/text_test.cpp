#include "cli/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/terminal.h"

namespace iket::cli {
namespace {

TEST(Text, GroupsDigits) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(12345678), "12,345,678");
  EXPECT_EQ(Count(std::numeric_limits<uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Text, CountsThings) {
  EXPECT_EQ(Counted(1, "launch", "launches"), "1 launch");
  EXPECT_EQ(Counted(0, "launch", "launches"), "0 launches");
  EXPECT_EQ(Counted(1200, "warp"), "1,200 warps");
}

TEST(Text, ScalesBytes) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1000), "1.00 kB");
  EXPECT_EQ(Bytes(276'824'064), "277 MB");
  EXPECT_EQ(Bytes(999'499), "999 kB");
  EXPECT_EQ(Bytes(999'500), "1.00 MB");
}

TEST(Text, SaysPowersOfTwoExactly) {
  EXPECT_EQ(BinaryBytes(32768), "32 KiB");
  EXPECT_EQ(BinaryBytes(2 << 20), "2 MiB");
  EXPECT_EQ(BinaryBytes(1000), "1.00 kB");
  EXPECT_EQ(BinaryBytes(0), "0 B");
}

TEST(Text, ScalesDurations) {
  EXPECT_EQ(Duration(0), "0.00 ns");
  EXPECT_EQ(Duration(9.994), "9.99 ns");
  EXPECT_EQ(Duration(9.996), "10.0 ns");
  EXPECT_EQ(Duration(999.4), "999 ns");
  EXPECT_EQ(Duration(999.5), "1.00 us");
  EXPECT_EQ(Duration(-1500), "-1.50 us");
  EXPECT_EQ(Duration(12'345'678), "12.3 ms");
  EXPECT_EQ(Duration(4.2e13), "42000 s");
  EXPECT_EQ(Duration(std::nan("")), "?");
}

TEST(Text, ShareIsZeroOnlyWhenNothingIs) {
  EXPECT_EQ(Share(0, 5), "0 %");
  EXPECT_EQ(Share(0, 0), "0 %");
  EXPECT_EQ(Share(1, 1'000'000), "< 0.01 %");
  EXPECT_EQ(Share(1, 3), "33.33 %");
}

TEST(Terminal, PrintsCharactersOnly) {
  EXPECT_EQ(Printable("kernel<int>(float*)"), "kernel<int>(float*)");
  EXPECT_EQ(Printable("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0");
  EXPECT_EQ(Printable("a\nb\x1b[31m\x7f"), "a?b?[31m?");
  EXPECT_EQ(Printable("\xff\xc3 \xe2\x82"), "?? ??");
  EXPECT_EQ(Printable("\xc2\x80 \xc2\x9b"
                      "31m"),
            "? ?31m")
      << "control characters of 8 bits";
  EXPECT_EQ(Printable(""), "");
}

TEST(Text, WordsOfAShell) {
  EXPECT_EQ(ShellWord("-I/usr/local/include"), "-I/usr/local/include");
  EXPECT_EQ(ShellWord("/opt/a user/iket"), "'/opt/a user/iket'");
  EXPECT_EQ(ShellWord("/it's"), "'/it'\\''s'");
  EXPECT_EQ(ShellWord("$HOME"), "'$HOME'");
  EXPECT_EQ(ShellWord("~/iket"), "'~/iket'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(Table, AlignsColumns) {
  Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  table.Row({"name", "n", "note"});
  table.Row({"lé", "1,000", ""});
  EXPECT_EQ(table.Text(2),
            "  name      n  note\n"
            "  lé    1,000\n");
}

}  // namespace
}  // namespace iket::cli
