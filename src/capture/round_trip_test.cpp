// What is written is what is read: fixed and random contents, every option of the writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "capture/reader.h"
#include "capture/sample.h"
#include "capture/writer.h"

namespace iket::capture {
namespace {

Reader Read(const std::vector<std::byte>& file) {
  Result<Reader> reader = Reader::FromBytes(file, "test");
  EXPECT_TRUE(reader) << reader.error().message;
  return std::move(*reader);
}

class RoundTrip : public testing::TestWithParam<int> {};

TEST_P(RoundTrip, FixedSample) {
  const std::vector<std::byte> file =
      SampleFile(FixedSample(), {.compression_level = GetParam(), .chunk_bytes = 4096});
  const Reader reader = Read(file);
  ExpectSame(FixedSample(), reader);
  EXPECT_FALSE(reader.capture().damage.any()) << reader.capture().damage.Summary();
}

TEST_P(RoundTrip, RandomSamples) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    const Sample sample = RandomSample(random);
    // Small chunks, so that tables, strings and single rings are split.
    const size_t chunk_bytes = random() % 3 == 0 ? size_t{4} << 20 : 4096 + random() % 8192;
    const std::vector<std::byte> file =
        SampleFile(sample, {.compression_level = GetParam(), .chunk_bytes = chunk_bytes});
    const Reader reader = Read(file);
    ExpectSame(sample, reader);
    EXPECT_FALSE(reader.capture().damage.any()) << reader.capture().damage.Summary();
    if (testing::Test::HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, RoundTrip, testing::Values(0, 1, 6, 12));

TEST(Writer, FileOnDiskAndBytesAtAnOddAddress) {
  const auto path =
      std::filesystem::temp_directory_path() / ("round_trip_" + std::to_string(getpid()));
  Result<Writer> writer = Writer::Create(path.string());
  ASSERT_TRUE(writer) << writer.error().message;
  WriteSample(FixedSample(), *writer);
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(std::filesystem::file_size(path), writer->file_bytes());
  Result<Reader> reader = Reader::Open(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(reader) << reader.error().message;
  ExpectSame(FixedSample(), *reader);

  std::vector<std::byte> file = SampleFile(FixedSample(), {.compression_level = 0});
  file.insert(file.begin(), std::byte{0});
  Result<Reader> shifted = Reader::FromBytes(std::span(file).subspan(1), "shifted");
  ASSERT_TRUE(shifted);
  ExpectSame(FixedSample(), *shifted);
}

TEST(Writer, LaterStatementsReplaceEarlierOnes) {
  auto owned = std::make_unique<MemorySink>();
  const MemorySink& sink = *owned;
  Writer writer = *Writer::Create(std::move(owned));
  ASSERT_TRUE(writer.Append(Session{.index = 0, .pid = 1}));
  ASSERT_TRUE(writer.Append(Device{.index = 0, .name = "early"}));
  ASSERT_TRUE(writer.Append(Device{.index = 1, .name = "other"}));
  ASSERT_TRUE(writer.Append(Counter{.name = "n", .value = 1}));
  ASSERT_TRUE(writer.Append(Note{.text = "same"}));
  ASSERT_TRUE(writer.Append(Device{.index = 0, .name = "late", .topology = {{1, 2}}}));
  ASSERT_TRUE(writer.Append(Counter{.name = "n", .value = 3}));
  ASSERT_TRUE(writer.Append(Session{.index = 0, .ended = true, .pid = 1, .exit_status = 0}));
  ASSERT_TRUE(writer.Append(Note{.text = "same"}));
  ASSERT_TRUE(writer.Finish());
  const Reader reader = Read(sink.bytes());
  const Capture& capture = reader.capture();
  ASSERT_EQ(capture.sessions.size(), 1u);
  EXPECT_TRUE(capture.sessions[0].ended);
  ASSERT_EQ(capture.devices.size(), 2u);
  EXPECT_EQ(capture.devices[0].name, "late");
  EXPECT_EQ(capture.devices[0].topology.size(), 1u);
  ASSERT_EQ(capture.counters.size(), 1u);
  EXPECT_EQ(capture.counters[0].value, 3u);
  EXPECT_EQ(capture.notes.size(), 2u);
}

TEST(Writer, RefusesRingsThatContradictThemselves) {
  Writer writer = *Writer::Create(std::make_unique<MemorySink>());
  const std::vector<ring::Record> records(2);
  const auto append = [&](RingContents ring) { return writer.Append(RingMoment{}, {&ring, 1}); };
  EXPECT_FALSE(append({.written = 33, .older = records}));
  EXPECT_FALSE(append({.written = 16, .older = records}));
  EXPECT_FALSE(append({.written = 32, .older = records, .lag_bytes = 16}));
  EXPECT_FALSE(append({.written = 32, .lag_bytes = 48}));
  EXPECT_EQ(writer.chunks_written(), 0u);
  EXPECT_TRUE(append({.written = 48, .older = records, .lag_bytes = 16}));
}

TEST(Writer, NothingAfterFinish) {
  Writer writer = *Writer::Create(std::make_unique<MemorySink>());
  ASSERT_TRUE(writer.Finish());
  EXPECT_EQ(writer.Append(Note{}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(writer.Append(Device{}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(writer.Append(RingMoment{}, {}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(writer.Finish().error().kind, ErrorKind::kUsage);
}

TEST(Reader, FindsObjects) {
  const std::vector<std::byte> file = SampleFile(FixedSample());
  const Reader reader = Read(file);
  const Capture& capture = reader.capture();
  ASSERT_NE(capture.FindKernel(8), nullptr);
  EXPECT_EQ(capture.FindKernel(8)->mangled_name, "plain");
  EXPECT_EQ(capture.FindKernel(9), nullptr);
  ASSERT_NE(capture.FindDeclaration(1, 0x7fffffff), nullptr);
  EXPECT_EQ(capture.FindDeclaration(1, 0x7fffffff)->kind, EventKind::kPop);
  EXPECT_EQ(capture.FindDeclaration(2, 0x7fffffff), nullptr);
  EXPECT_NE(capture.FindDevice(1), nullptr);
  EXPECT_NE(capture.FindImage(1), nullptr);
  EXPECT_NE(capture.FindContext(2), nullptr);
  EXPECT_EQ(capture.FindContext(0), nullptr);
}

TEST(Reader, AVisitorMayStop) {
  const std::vector<std::byte> file = SampleFile(FixedSample());
  const Reader reader = Read(file);
  ASSERT_EQ(reader.ring_block_count(), 2u);
  const RingWalk walk = reader.ForEachRingBlock([](const RingBlock&) { return false; });
  EXPECT_TRUE(walk.stopped);
  EXPECT_EQ(walk.blocks, 1u);
}

TEST(Reader, SaysWhyItCannotOpen) {
  EXPECT_EQ(Reader::Open("/nonexistent/x.iketcap").error().kind, ErrorKind::kSystem);
  EXPECT_THAT(Reader::Open("/nonexistent/x.iketcap").error().message,
              testing::HasSubstr("/nonexistent/x.iketcap: cannot open the capture: No such file"));
  EXPECT_EQ(Reader::Open("/").error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(Reader::Open("/dev/null").error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace iket::capture
