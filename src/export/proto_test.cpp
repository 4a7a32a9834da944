#include "export/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace iket::exporter {
namespace {

using std::string_literals::operator""s;

// Expected bytes are worked out by hand from the protobuf encoding guide.
TEST(ProtoWriter, WritesVarints) {
  ProtoWriter writer;
  writer.Varint(1, 150);
  writer.Varint(16, 0);
  writer.Varint(2, ~uint64_t{0});
  EXPECT_EQ(writer.bytes(),
            "\x08\x96\x01"
            "\x80\x01\x00"
            "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(ProtoWriter, WritesTextAndDoubles) {
  ProtoWriter writer;
  writer.Text(2, "testing");
  writer.Text(3, "");
  writer.Double(1, 1.5);
  EXPECT_EQ(writer.bytes(), "\x12\x07testing\x1a\x00\x09\0\0\0\0\0\0\xf8\x3f"s);
}

TEST(ProtoWriter, PatchesLengthsOfNestedMessages) {
  ProtoWriter writer;
  {
    auto outer = writer.Message(3);
    writer.Varint(1, 150);
    {
      auto empty = writer.Message(4);
    }
  }
  EXPECT_EQ(writer.bytes(), "\x1a\x05\x08\x96\x01\x22\x00"s);
}

// Lengths of 127, 128, 16,383 and 16,384 bytes need 1, 2, 2 and 3 bytes; the outer message moves
// with the inner one.
TEST(ProtoWriter, MovesLongMessages) {
  for (size_t length : {126, 127, 128, 16383, 16384, 3000000}) {
    const std::string body(length, 'x');
    ProtoWriter inner;
    inner.Text(1, body);
    ProtoWriter middle;
    middle.Text(2, inner.bytes());
    ProtoWriter expected;
    expected.Text(3, middle.bytes());
    expected.Varint(4, 7);

    ProtoWriter writer;
    {
      auto outer = writer.Message(3);
      auto nested = writer.Message(2);
      writer.Text(1, body);
    }
    writer.Varint(4, 7);
    EXPECT_TRUE(writer.bytes() == expected.bytes()) << length;
  }
}

TEST(ProtoWriter, ClearKeepsNothing) {
  ProtoWriter writer;
  writer.Varint(1, 1);
  writer.Clear();
  EXPECT_EQ(writer.bytes(), "");
  writer.Varint(1, 2);
  EXPECT_EQ(writer.bytes(), "\x08\x02");
}

}  // namespace
}  // namespace iket::exporter
