// From what a process left behind to one capture, also when something of it is missing.
#include "session/finish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "capture/reader.h"
#include "session/launch_log.h"
#include "session/message.h"

namespace iket::session {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kPid = 0xabc;
const Ending kEnding{.exit_status = 3, .signal = 0, .end_ns = 900, .end_realtime_ns = 1900};

Result<void> NoRings(capture::Writer&) { return {}; }

class FinishTest : public ::testing::Test {
 protected:
  FinishTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~FinishTest() override { fs::remove_all(folder_); }

  std::string Path(const char* suffix) const { return SessionPath(folder_, kPid, suffix); }

  // What a guest writes; `whole`: it came to its end.
  void WriteAccount(bool whole) const {
    auto writer = capture::Writer::Create(Path(kSuffixPart)).value();
    ASSERT_TRUE(writer.Append(capture::Session{
        .pid = kPid, .tool_version = "1", .command_line = {"./app", "-x"}, .start_ns = 100}));
    ASSERT_TRUE(writer.Append(capture::Device{.name = "H200", .sm_count = 132}));
    ASSERT_TRUE(writer.Append(capture::Image{.sm = 90, .marked_functions = 1}));
    ASSERT_TRUE(writer.Append(capture::Kernel{.index = 4, .mangled_name = "k"}));
    ASSERT_TRUE(writer.Append(capture::Declaration{.event = 42, .name = "load"}));
    ASSERT_TRUE(writer.Append(capture::Context{.ring_bytes = 4096, .sm_count = 132}));
    ASSERT_TRUE(writer.Append(capture::Note{.text = "said by the guest"}));
    ASSERT_TRUE(writer.Append(capture::Counter{.name = "refused", .value = 2}));
    ASSERT_TRUE(
        writer.Append(capture::ClockExchange{.timer_ns = 5, .before_ns = 1, .after_ns = 3}));
    ASSERT_TRUE(writer.Append(capture::PlacedSm{.sm = 131, .place = {.tpc = 7, .gpc = 1}}));
    // It drained one ring itself, of which the last record could not be read.
    const std::vector<ring::Record> records = {{1, 42, 0, 0}, {2, 42, 0, 0}};
    const std::vector<capture::RingContents> rings = {
        {.ring = 9, .written = 112, .older = records, .lag_bytes = 16}};
    ASSERT_TRUE(writer.Append(capture::RingMoment{.number = 0}, rings));
    if (!whole) return;
    ASSERT_TRUE(writer.Finish());
  }
  void WriteLaunches(uint32_t count) const {
    auto log = LaunchLog::Create(Path(kSuffixLaunches)).value();
    for (uint32_t i = 0; i < count; ++i) {
      LaunchEntry* entry = log.Append();
      entry->kernel = 4;
      entry->host_ns = 200 + i;
      entry->state.store(1, std::memory_order_release);
    }
  }
  std::vector<std::string> FilesLeft() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string folder_ = ::testing::TempDir() + "iket_finish_test_" +
                        ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FinishTest, ARunOnASoftwareDeviceIsCalledThat) {
  for (const bool simulated : {false, true}) {
    {
      auto writer = capture::Writer::Create(Path(kSuffixPart)).value();
      ASSERT_TRUE(writer.Append(capture::Session{.pid = kPid}));
      ASSERT_TRUE(writer.Append(capture::Device{.simulated = simulated, .name = "some device"}));
      ASSERT_TRUE(writer.Finish());
    }
    WriteLaunches(1);
    const auto finished = FinishCapture(folder_, kPid, kEnding, NoRings);
    ASSERT_TRUE(finished) << finished.error().message;
    const auto reader = capture::Reader::Open(finished->path).value();
    EXPECT_EQ(reader.capture().sessions.front().software_device, simulated);
  }
}

TEST_F(FinishTest, JoinsAccountLaunchesAndRings) {
  WriteAccount(true);
  WriteLaunches(3);
  const auto finished = FinishCapture(folder_, kPid, kEnding, [](capture::Writer& writer) {
    const std::vector<ring::Record> records = {{7, 42, 0, 0}};
    ring::RingHeader header{};
    header.cursor = 16;
    const std::vector<capture::RingContents> rings = {
        {.ring = 1, .written = 16, .newer = records, .header = header}};
    return writer.Append(capture::RingMoment{.number = 1}, rings);
  });
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->path, Path(kSuffixCapture));
  EXPECT_EQ(finished->incomplete, "");
  EXPECT_THAT(FilesLeft(), ElementsAre("iket_pid_0xabc.iketcap"));

  const auto reader = capture::Reader::Open(finished->path).value();
  const capture::Capture& facts = reader.capture();
  EXPECT_FALSE(facts.damage.any()) << facts.damage.Summary();
  ASSERT_EQ(facts.sessions.size(), 1u);
  const capture::Session& session = facts.sessions.front();
  EXPECT_TRUE(session.ended);
  EXPECT_EQ(session.exit_status, 3);
  EXPECT_EQ(session.start_ns, 100);
  EXPECT_EQ(session.end_ns, 900);
  EXPECT_EQ(session.end_realtime_ns, 1900);
  EXPECT_THAT(session.command_line, ElementsAre("./app", "-x"));
  EXPECT_EQ(facts.devices.front().name, "H200");
  EXPECT_EQ(facts.images.size(), 1u);
  EXPECT_EQ(facts.FindKernel(4)->mangled_name, "k");
  EXPECT_EQ(facts.FindDeclaration(0, 42)->name, "load");
  EXPECT_EQ(facts.contexts.size(), 1u);
  EXPECT_THAT(facts.notes,
              ElementsAre(::testing::Field(&capture::Note::text, "said by the guest")));
  EXPECT_THAT(facts.counters, ElementsAre(capture::Counter{"refused", 2}));
  ASSERT_EQ(facts.exchanges.size(), 1u);
  EXPECT_EQ(facts.exchanges[0].timer_ns, 5u);
  ASSERT_EQ(facts.placed_sms.size(), 1u);
  EXPECT_EQ(facts.placed_sms[0].place.gpc, 1);
  ASSERT_EQ(facts.launches.size(), 3u);
  EXPECT_EQ(facts.launches[2].host_ns, 202);

  std::vector<std::string> rings;
  reader.ForEachRingBlock([&rings](const capture::RingBlock& block) {
    for (const capture::RingRow& row : block.rows) {
      rings.push_back(fmt::format("moment {} ring {} written {} from {}: {} records",
                                  block.moment.number, row.ring, row.written, row.first,
                                  row.records.size()));
    }
    return true;
  });
  EXPECT_THAT(rings, ElementsAre("moment 0 ring 9 written 112 from 64: 2 records",
                                 "moment 1 ring 1 written 16 from 0: 1 records"));
}

// Of a capture, which launches are left out, and how many readings of rings it has.
struct Part {
  std::vector<bool> left_out;
  uint64_t readings = 0;

  bool operator==(const Part&) const = default;
};

TEST_F(FinishTest, ASnapshotOfTimesHasWhatWasThen) {
  WriteAccount(true);  // its rings were read at 0
  WriteLaunches(3);    // at 200, 201 and 202
  const auto part = [this](Times::Time time) {
    const Times times{.times = {std::move(time)}};
    const std::string path = folder_ + "/part";
    EXPECT_TRUE(WriteSnapshot(folder_, kPid, path, NoRings, &times));
    const auto reader = capture::Reader::Open(path).value();
    Part found{.left_out = {}, .readings = reader.ring_block_count()};
    for (const capture::Launch& launch : reader.capture().launches) {
      found.left_out.push_back(launch.left_out);
    }
    EXPECT_EQ(reader.capture().kernels.size(), 1) << "what is no launch and no ring is there";
    return found;
  };
  EXPECT_EQ(part({.begin_ns = 0, .end_ns = 300}), (Part{{false, false, false}, 1}));
  EXPECT_EQ(part({.begin_ns = 201, .end_ns = 201}), (Part{{true, false, true}, 0}));
  EXPECT_EQ(part({.begin_ns = 0, .end_ns = 200}), (Part{{false, true, true}, 1}));
  EXPECT_EQ(part({.begin_ns = 0, .end_ns = 200, .contexts = {{0, 3}}}),
            (Part{{false, true, true}, 1}));
  EXPECT_EQ(part({.begin_ns = 0, .end_ns = 200, .contexts = {{3}}}), (Part{{true, true, true}, 0}));
  EXPECT_EQ(part({.begin_ns = 0, .end_ns = 200, .contexts = {std::vector<uint32_t>{}}}),
            (Part{{true, true, true}, 0}));
}

TEST_F(FinishTest, KeepsTheAccountOfAGuestThatWasKilled) {
  WriteAccount(false);
  WriteLaunches(1);
  Ending killed = kEnding;
  killed.exit_status = -1;
  killed.signal = 9;
  const auto finished = FinishCapture(folder_, kPid, killed, NoRings);
  ASSERT_TRUE(finished);
  const auto reader = capture::Reader::Open(finished->path).value();
  EXPECT_EQ(reader.capture().sessions.front().signal, 9);
  EXPECT_EQ(reader.capture().kernels.size(), 1u);
  EXPECT_EQ(reader.capture().launches.size(), 1u);
  EXPECT_EQ(reader.ring_block_count(), 1u);
}

TEST_F(FinishTest, KeepsWhatIsWholeOfAnAccountThatWasCut) {
  WriteAccount(true);
  WriteLaunches(1);
  fs::resize_file(Path(kSuffixPart), fs::file_size(Path(kSuffixPart)) - 100);
  const auto finished = FinishCapture(folder_, kPid, kEnding, NoRings);
  ASSERT_TRUE(finished);
  const auto reader = capture::Reader::Open(finished->path).value();
  EXPECT_TRUE(reader.capture().sessions.front().ended);
  EXPECT_EQ(reader.capture().kernels.size(), 1u);
  EXPECT_THAT(FilesLeft(), ElementsAre("iket_pid_0xabc.iketcap"));
}

TEST_F(FinishTest, SaysThatThereIsNoLaunchLog) {
  WriteAccount(true);
  const auto finished = FinishCapture(folder_, kPid, kEnding, NoRings);
  ASSERT_TRUE(finished);
  const auto reader = capture::Reader::Open(finished->path).value();
  ASSERT_EQ(reader.capture().notes.size(), 2u);
  EXPECT_THAT(reader.capture().notes[1].text, HasSubstr("no launch log"));
  EXPECT_EQ(reader.capture().notes[1].severity, capture::Severity::kWarning);
}

TEST_F(FinishTest, ReplacesWhatAnEarlierAttemptLeft) {
  WriteAccount(true);
  WriteLaunches(1);
  std::ofstream(Path(kSuffixCapture) + ".tmp") << std::string(100'000, 'x');
  ASSERT_TRUE(FinishCapture(folder_, kPid, kEnding, NoRings));
  EXPECT_THAT(FilesLeft(), ElementsAre("iket_pid_0xabc.iketcap"));
  EXPECT_FALSE(capture::Reader::Open(Path(kSuffixCapture))->capture().damage.any());
}

TEST_F(FinishTest, RefusesWithoutAnAccount) {
  WriteLaunches(1);
  const auto finished = FinishCapture(folder_, kPid, kEnding, NoRings);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, HasSubstr("iket_pid_0xabc.iketcap.part"));
  EXPECT_FALSE(fs::exists(Path(kSuffixCapture)));
  EXPECT_THAT(FilesLeft(), ElementsAre("iket_pid_0xabc.launches"));
}

TEST_F(FinishTest, RefusesAnAccountThatIsNoCapture) {
  std::ofstream(Path(kSuffixPart)) << "something else";
  EXPECT_EQ(FinishCapture(folder_, kPid, kEnding, NoRings).error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(FilesLeft(), ElementsAre("iket_pid_0xabc.iketcap.part"));
}

TEST_F(FinishTest, KeepsEverythingElseWhenRingsCannotBeRead) {
  WriteAccount(true);
  WriteLaunches(1);
  const auto finished = FinishCapture(folder_, kPid, kEnding, [](capture::Writer&) -> Result<void> {
    return Fail(ErrorKind::kSystem, "the device is gone");
  });
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->incomplete, "the device is gone");
  const auto reader = capture::Reader::Open(finished->path).value();
  EXPECT_FALSE(reader.capture().damage.cut);
  EXPECT_EQ(reader.capture().launches.size(), 1u);
}

}  // namespace
}  // namespace iket::session
