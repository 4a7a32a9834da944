// Several threads that append rings to one capture: every record is there once, whatever fails and
// whenever the process dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "capture/mapped_sink.h"
#include "capture/reader.h"
#include "capture/writer.h"

namespace iket::capture {
namespace {

constexpr uint32_t kThreads = 4;
constexpr uint32_t kRingsPerThread = 8;

class SharedWriterTest : public testing::Test {
 protected:
  SharedWriterTest()
      : path_(
            (std::filesystem::temp_directory_path() / ("shared_writer_" + std::to_string(getpid())))
                .string()) {}
  ~SharedWriterTest() override { std::filesystem::remove(path_); }

  Result<Writer> Create(bool pack = false) const {
    auto sink = MappedSink::Create(path_);
    if (!sink) return tl::unexpected(sink.error());
    return Writer::Create(std::move(*sink),
                          {.compression_level = 0, .shared = true, .pack_rings = pack});
  }
  void ExpectEveryRecordOnce(bool pack);

  const std::string path_;
};

// Appends rows to the rings of one thread, of sizes that look random, each record with its ring and
// position, until `until` says stop. What was appended, and how many calls failed.
struct Appended {
  std::vector<uint64_t> records = std::vector<uint64_t>(kRingsPerThread);
  int errors = 0;
};
Appended AppendAsThread(Writer& writer, uint32_t thread, const std::function<bool()>& until) {
  Appended appended;
  uint64_t size = thread;
  std::vector<std::vector<ring::Record>> memory(kRingsPerThread);
  for (uint64_t moment = thread; !until(); moment += kThreads) {
    std::vector<RingContents> rows;
    for (uint32_t i = 0; i < kRingsPerThread; ++i) {
      const uint32_t ring = thread * kRingsPerThread + i;
      size = size * 6364136223846793005u + 1442695040888963407u;
      memory[i].clear();
      for (uint64_t count = size >> 55; count > 0; --count) {
        const uint64_t position = appended.records[i]++;
        memory[i].push_back({.clock = static_cast<uint32_t>(position),
                             .tag = 1,
                             .low = ring,
                             .high = static_cast<uint32_t>(moment)});
      }
      const std::span<const ring::Record> all = memory[i];
      rows.push_back({.ring = ring,
                      .written = appended.records[i] * ring::kRecordBytes,
                      .older = all.first(all.size() / 3),
                      .newer = all.subspan(all.size() / 3)});
    }
    if (!writer.Append(RingMoment{.settled = true, .number = moment}, rows)) ++appended.errors;
  }
  return appended;
}

std::vector<Appended> AppendFromThreads(Writer& writer, const std::function<bool()>& until) {
  std::vector<Appended> appended(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { appended[i] = AppendAsThread(writer, i, until); });
  }
  for (std::thread& thread : threads) thread.join();
  return appended;
}

// Of each ring the records in the file, which must be what was written there. Fails the running
// test. `whole`: without a gap.
std::map<uint32_t, uint64_t> RecordsOf(const Reader& reader, bool whole) {
  std::map<uint32_t, uint64_t> records, ends;
  const RingWalk walk = reader.ForEachRingBlock([&](const RingBlock& block) {
    for (const RingRow& row : block.rows) {
      uint64_t position = row.first / ring::kRecordBytes;
      EXPECT_GE(position, ends[row.ring]) << "in order, and once";
      EXPECT_TRUE(!whole || position == ends[row.ring]);
      for (const ring::Record& record : row.records) {
        EXPECT_EQ(record.clock, position++);
        EXPECT_EQ(record.low, row.ring);
        EXPECT_EQ(record.high, block.moment.number);
      }
      ends[row.ring] = position;
      records[row.ring] += row.records.size();
    }
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(walk.blocks_malformed, 0u);
  return records;
}

// Until so many calls were made.
std::function<bool()> After(std::atomic<int>& calls, int most) {
  return [&calls, most] { return calls++ >= most; };
}

void SharedWriterTest::ExpectEveryRecordOnce(bool pack) {
  Result<Writer> writer = Create(pack);
  ASSERT_TRUE(writer) << writer.error().message;
  std::atomic<int> calls = 0;
  // 200 MB: more than a window of the file.
  const auto appended = AppendFromThreads(*writer, After(calls, 6000));
  EXPECT_TRUE(writer->Append(Note{.text = "after"}));
  EXPECT_TRUE(writer->Finish());
  EXPECT_EQ(std::filesystem::file_size(path_), writer->file_bytes());
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE(reader->capture().damage.any()) << reader->capture().damage.Summary();
  EXPECT_EQ(reader->capture().notes.size(), 1u);
  const auto records = RecordsOf(*reader, true);
  uint64_t all = 0;
  for (uint32_t ring = 0; ring < kThreads * kRingsPerThread; ++ring) {
    const uint64_t expected = appended[ring / kRingsPerThread].records[ring % kRingsPerThread];
    EXPECT_EQ(records.contains(ring) ? records.at(ring) : 0, expected) << "ring " << ring;
    all += expected;
  }
  EXPECT_GT(all * ring::kRecordBytes, uint64_t{150} << 20);
}

TEST_F(SharedWriterTest, EveryRecordIsThereOnce) { ExpectEveryRecordOnce(false); }

TEST_F(SharedWriterTest, EveryRecordIsThereOnceWherePacked) {
  ExpectEveryRecordOnce(true);
  EXPECT_LT(std::filesystem::file_size(path_), uint64_t{50} << 20);
}

TEST_F(SharedWriterTest, ALimitIsSaidOnceAndCounted) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr rlim_t kMost = 20 << 20;
    const rlimit limit{.rlim_cur = kMost, .rlim_max = kMost};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(10);
    Result<Writer> writer = Create();
    if (!writer) _exit(11);
    std::atomic<int> calls = 0;
    const auto appended = AppendFromThreads(*writer, After(calls, 2000));
    int errors = 0;
    for (const Appended& one : appended) errors += one.errors;
    if (errors != 1) _exit(12);
    if (writer->chunks_lost() == 0) _exit(13);
    _exit(writer->Finish() ? 0 : 14);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const Damage& damage = reader->capture().damage;
  EXPECT_FALSE(damage.cut);
  EXPECT_EQ(damage.chunks_missing + damage.chunks_damaged + damage.bytes_skipped, 0u);
  EXPECT_GT(damage.chunks_unwritten, 0u);
  EXPECT_EQ(damage.chunks_unwritten + reader->ring_block_count(), 2000u);
  RecordsOf(*reader, false);
}

// Fails some pieces after others have taken their places behind them.
class FailingPlaces final : public ByteSink {
 public:
  explicit FailingPlaces(std::unique_ptr<MappedSink> sink) : sink_(std::move(sink)) {}
  Result<void> Write(std::span<const std::span<const std::byte>> parts) override {
    return sink_->Write(parts);
  }
  bool has_places() const override { return true; }
  Result<uint64_t> Take(uint64_t bytes) override {
    ++taken_;
    return sink_->Take(bytes);
  }
  Result<void> Fill(uint64_t at, std::span<const std::span<const std::byte>> parts) override {
    const int mine = ++filled_;
    if (mine != 500 && mine != 501) return sink_->Fill(at, parts);
    // Half of it, and too late for it to be the last.
    static_cast<void>(sink_->Fill(at, parts.first(parts.size() / 2)));
    if (mine == 500) {
      while (taken_ < 501) std::this_thread::yield();
    }
    return Fail(ErrorKind::kSystem, "full");
  }
  bool GiveBack(uint64_t at, uint64_t bytes) override {
    const bool back = sink_->GiveBack(at, bytes);
    holes += back ? 0 : 1;
    return back;
  }
  Result<void> CloseHoles() override { return sink_->CloseHoles(); }
  int holes = 0;

 private:
  std::unique_ptr<MappedSink> sink_;
  std::atomic<int> taken_ = 0, filled_ = 0;
};

TEST_F(SharedWriterTest, AFailureCostsNobodyElse) {
  auto owned = std::make_unique<FailingPlaces>(*MappedSink::Create(path_));
  const FailingPlaces& sink = *owned;
  Result<Writer> writer =
      Writer::Create(std::move(owned), {.compression_level = 0, .shared = true});
  ASSERT_TRUE(writer);
  std::atomic<int> calls = 0;
  const auto appended = AppendFromThreads(*writer, After(calls, 1000));
  int errors = 0;
  for (const Appended& one : appended) errors += one.errors;
  EXPECT_EQ(errors, 1) << "said once";
  EXPECT_TRUE(writer->Finish()) << "the closing chunk is tried";
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const Damage& damage = reader->capture().damage;
  EXPECT_FALSE(damage.cut);
  EXPECT_EQ(damage.chunks_unwritten, 1000 - reader->ring_block_count());
  EXPECT_EQ(damage.chunks_unwritten, writer->chunks_lost());
  EXPECT_EQ(damage.chunks_missing, static_cast<uint64_t>(sink.holes));
  EXPECT_EQ(damage.chunks_damaged, 0u);
  EXPECT_EQ(damage.bytes_skipped, 0u) << "holes are closed";
  EXPECT_EQ(std::filesystem::file_size(path_), writer->file_bytes());
  EXPECT_EQ(reader->capture().damage.chunks_whole, writer->chunks_written());
  RecordsOf(*reader, false);
}

TEST_F(SharedWriterTest, AKillLeavesWhatWasWritten) {
  for (const uintmax_t bytes : {uintmax_t{1} << 20, uintmax_t{9} << 20, uintmax_t{100} << 20}) {
    SCOPED_TRACE(bytes);
    std::filesystem::remove(path_);
    const pid_t child = fork();
    if (child == 0) {
      Result<Writer> writer = Create();
      if (writer) AppendFromThreads(*writer, [] { return false; });
      _exit(1);
    }
    std::error_code none_yet;
    for (;;) {
      const auto size = std::filesystem::file_size(path_, none_yet);
      if (!none_yet && size >= bytes) break;
      usleep(100);
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Result<Reader> reader = Reader::Open(path_);
    ASSERT_TRUE(reader) << reader.error().message;
    const Damage& damage = reader->capture().damage;
    EXPECT_TRUE(damage.cut);
    EXPECT_EQ(damage.chunks_malformed, 0u);
    // Of each thread at most the one that it was writing.
    EXPECT_LE(damage.chunks_missing + damage.chunks_damaged, kThreads);
    EXPECT_GT(reader->ring_block_count(), 0u);
    RecordsOf(*reader, false);
  }
}

// The same, at will: a hole with whole chunks on both sides is closed at the end.
TEST_F(SharedWriterTest, HolesAreClosedAtTheEnd) {
  auto owned = *MappedSink::Create(path_);
  MappedSink& sink = *owned;
  Result<Writer> writer =
      Writer::Create(std::move(owned), {.compression_level = 0, .shared = true});
  ASSERT_TRUE(writer);
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const uint64_t bytes : {8u, 40u, 4096u, 3u << 20}) {
    ASSERT_TRUE(writer->Append(Note{.text = "before"}));
    places.emplace_back(*sink.Take(bytes), bytes);
  }
  ASSERT_TRUE(writer->Append(Note{.text = "behind"}));
  for (const auto& [at, bytes] : places) EXPECT_FALSE(sink.GiveBack(at, bytes));
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(std::filesystem::file_size(path_), writer->file_bytes());
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->capture().notes.size(), 5u);
  EXPECT_FALSE(reader->capture().damage.any()) << reader->capture().damage.Summary();
}

// What a kill leaves, at will: places that were taken and not filled, at the end and before it.
TEST_F(SharedWriterTest, PlacesThatNobodyFilledAreSteppedOver) {
  auto owned = *MappedSink::Create(path_);
  MappedSink& sink = *owned;
  Result<Writer> writer =
      Writer::Create(std::move(owned), {.compression_level = 0, .shared = true});
  ASSERT_TRUE(writer);
  uint64_t skipped = 0;
  for (const uint64_t bytes : {8u, 40u, 4096u, 3u << 20}) {
    ASSERT_TRUE(writer->Append(Note{.text = "before"}));
    ASSERT_TRUE(sink.Take(bytes));
    skipped += bytes;
  }
  {
    const Writer gone = std::move(*writer);
  }
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->capture().notes.size(), 4u);
  EXPECT_EQ(reader->capture().damage.bytes_skipped, skipped);
  EXPECT_EQ(reader->capture().damage.chunks_damaged, 0u);
}

// Without address space for a window the file is written.
TEST_F(SharedWriterTest, AFileThatCannotBeMappedIsWritten) {
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(getpagesize()) + (rlim_t{30} << 20);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(10);
    Result<Writer> writer = Create();
    if (!writer) _exit(11);
    std::atomic<int> calls = 0;
    if (AppendAsThread(*writer, 0, After(calls, 100)).errors != 0) _exit(12);
    _exit(writer->Finish() ? 0 : 13);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE(reader->capture().damage.any()) << reader->capture().damage.Summary();
  EXPECT_EQ(reader->ring_block_count(), 100u);
  RecordsOf(*reader, true);
}

TEST_F(SharedWriterTest, ADeviceThatIsFull) {
  auto sink = MappedSink::Create("/dev/full");
  ASSERT_TRUE(sink);
  const auto writer = Writer::Create(std::move(*sink), {.compression_level = 0, .shared = true});
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message, testing::HasSubstr("/dev/full: cannot write the capture"));
}

TEST_F(SharedWriterTest, AFileThatCannotBeMade) {
  const auto sink = MappedSink::Create("/nonexistent/x.iketcap");
  ASSERT_FALSE(sink);
  EXPECT_THAT(sink.error().message, testing::HasSubstr("cannot create the capture: No such"));
}

}  // namespace
}  // namespace iket::capture
