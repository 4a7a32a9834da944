// Disks that fill up, limits and pipes: the program goes on, and what was written stays readable.
#include "capture/sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "capture/reader.h"
#include "capture/sample.h"
#include "capture/writer.h"

namespace iket::capture {
namespace {

class SinkTest : public testing::Test {
 protected:
  SinkTest()
      : path_((std::filesystem::temp_directory_path() / ("sink_" + std::to_string(getpid())))
                  .string()) {}
  ~SinkTest() override { std::filesystem::remove(path_); }

  // Runs `body` in a child, since limits and signals belong to a process; its exit status, or minus
  // the signal that ended it.
  static int InChild(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string path_;
};

// Notes that do not compress.
std::vector<Note> Noise(size_t count) {
  std::mt19937_64 random(1);
  std::vector<Note> notes(count);
  for (Note& note : notes) {
    note.text.resize(1000);
    for (char& c : note.text) c = static_cast<char>(random());
  }
  return notes;
}

TEST_F(SinkTest, AFullDiskIsSaidOnceAndCounted) {
  const int status = InChild([&] {
    const rlimit limit{.rlim_cur = 20'000, .rlim_max = 20'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    Result<Writer> writer = Writer::Create(path_);
    if (!writer) return 11;
    if (!writer->Append(Session{.pid = 7})) return 12;
    if (!writer->Append(std::span<const Note>(Noise(10)))) return 13;
    // Passes the limit in the middle of a chunk; no signal may reach us.
    const Result<void> full = writer->Append(std::span<const Note>(Noise(40)));
    if (full || full.error().kind != ErrorKind::kSystem) return 14;
    if (full.error().message.find("File too large") == std::string::npos) return 15;
    const uint64_t lost = writer->chunks_lost();
    if (lost == 0) return 16;
    if (!writer->Append(std::span<const Note>(Noise(5)))) return 17;
    if (writer->chunks_lost() <= lost || writer->bytes_lost() < 30'000) return 18;
    if (!writer->Finish()) return 19;
    return 0;
  });
  ASSERT_EQ(status, 0);
  Result<Reader> reader = Reader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const Capture& capture = reader->capture();
  EXPECT_EQ(capture.sessions.size(), 1u);
  EXPECT_EQ(capture.notes.size(), 10u);
  EXPECT_EQ(capture.notes[3].text, Noise(10)[3].text);
  EXPECT_FALSE(capture.damage.cut);
  EXPECT_EQ(capture.damage.bytes_skipped, 0u);
  EXPECT_GT(capture.damage.chunks_unwritten, 0u);
  EXPECT_GE(capture.damage.bytes_unwritten, 30'000u);
  EXPECT_THAT(capture.damage.Summary(), testing::HasSubstr("could not be written"));
}

TEST_F(SinkTest, TheProgramsOwnSignalsStayItsOwn) {
  const int status = InChild([&] {
    const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    raise(SIGXFSZ);
    Result<Writer> writer = Writer::Create(path_);
    if (!writer || writer->Append(std::span<const Note>(Noise(40)))) return 11;
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGXFSZ) != 1) return 12;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGXFSZ) == 1 && sigismember(&mask, SIGPIPE) == 0 ? 0 : 13;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SinkTest, DeviceFull) {
  const Result<Writer> writer = Writer::Create("/dev/full");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::kSystem);
  EXPECT_THAT(writer.error().message,
              testing::HasSubstr("/dev/full: cannot write the capture after 0 bytes: No space"));
}

TEST_F(SinkTest, FileThatCannotBeMade) {
  const Result<Writer> writer = Writer::Create("/nonexistent/x.iketcap");
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message,
              testing::HasSubstr("/nonexistent/x.iketcap: cannot create the capture: No such"));
}

TEST_F(SinkTest, APipeCarriesAWholeCapture) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int status = InChild([&] {
    close(ends[0]);
    Result<Writer> writer = Writer::Create(std::make_unique<FdSink>(ends[1], "pipe"));
    if (!writer) return 10;
    WriteSample(FixedSample(), *writer);
    return writer->Finish() ? 0 : 11;
  });
  close(ends[1]);
  std::vector<std::byte> file;
  std::array<std::byte, 4096> buffer;
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    file.insert(file.end(), buffer.begin(), buffer.begin() + got);
  }
  close(ends[0]);
  EXPECT_EQ(status, 0);
  Result<Reader> reader = Reader::FromBytes(file, "pipe");
  ASSERT_TRUE(reader);
  ExpectSame(FixedSample(), *reader);
}

TEST_F(SinkTest, AClosedPipeEndsTheCaptureNotTheProgram) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const int status = InChild([&] {
    std::signal(SIGPIPE, SIG_DFL);
    return Writer::Create(std::make_unique<FdSink>(ends[1], "pipe")) ? 10 : 0;
  });
  close(ends[1]);
  EXPECT_EQ(status, 0);
}

// Fails from the n-th piece on; says whether the failure leaves a torn piece.
class FailingSink final : public ByteSink {
 public:
  FailingSink(int good, bool torn) : good_(good), tears_(torn) {}
  Result<void> Write(std::span<const std::span<const std::byte>>) override {
    if (++pieces_ <= good_) return {};
    ++failures_;
    return Fail(ErrorKind::kSystem, "full");
  }
  bool torn() const override { return tears_ && failures_ > 0; }
  int failures_ = 0;

 private:
  int good_;
  bool tears_;
  int pieces_ = 0;
};

TEST(WriterOnAFailingSink, TriesTheClosingChunkUnlessTorn) {
  for (bool torn : {false, true}) {
    auto owned = std::make_unique<FailingSink>(2, torn);
    const FailingSink& sink = *owned;
    Writer writer = *Writer::Create(std::move(owned));
    EXPECT_TRUE(writer.Append(Note{}));
    EXPECT_FALSE(writer.Append(Note{}));
    EXPECT_TRUE(writer.Append(Note{}));
    EXPECT_EQ(sink.failures_, 1);
    EXPECT_FALSE(writer.Finish());
    EXPECT_EQ(sink.failures_, torn ? 1 : 2);
    EXPECT_EQ(writer.chunks_lost(), 2u);
  }
}

}  // namespace
}  // namespace iket::capture
