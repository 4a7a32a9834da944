// Real programs under the supervisor, with a harmless library in the place of the collector.
#include "supervisor/supervise.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "capture/reader.h"
#include "capture/writer.h"
#include "supervisor/command.h"

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Sets a variable of the environment for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/out");
    fs::create_directories(folder_ + "/tmp");
  }
  ~FolderTest() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& contents, mode_t mode) const {
    const std::string path = folder_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::string folder_ = ::testing::TempDir() + "iket_supervise_test_" +
                        ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

// --- ResolveCommand

class ResolveCommandTest : public FolderTest {
 protected:
  std::string RefusalOf(const std::string& command) const {
    const auto resolved = ResolveCommand(command);
    EXPECT_FALSE(resolved) << command;
    if (resolved) return "";
    EXPECT_EQ(resolved.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(resolved.error().message, HasSubstr(command));
    return resolved.error().message;
  }
};

// The head of a program for the loader, with or without the segment that names the loader.
std::string Elf(bool dynamic, uint8_t elf_class = ELFCLASS64) {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = elf_class;
  header.e_type = ET_EXEC;
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  Elf64_Phdr segments[2] = {};
  segments[0].p_type = PT_LOAD;
  segments[1].p_type = dynamic ? PT_INTERP : PT_NOTE;
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(segments), sizeof segments);
}

TEST_F(ResolveCommandTest, FindsPrograms) {
  EXPECT_EQ(ResolveCommand("/bin/sh").value(), "/bin/sh");
  EXPECT_THAT(ResolveCommand("sh").value(), ::testing::EndsWith("/sh"));
  const std::string script = Write("script", "#!/bin/sh\n", 0755);
  EXPECT_EQ(ResolveCommand(script).value(), script);
  const std::string dynamic = Write("dynamic", Elf(true), 0755);
  EXPECT_EQ(ResolveCommand(dynamic).value(), dynamic);
}

TEST_F(ResolveCommandTest, SearchesThePathAsTheShellDoes) {
  Write("first/tool", "not executable", 0644);
  fs::create_directories(folder_ + "/folder/tool");
  const std::string second = Write("second/tool", "#!/bin/sh\n", 0755);
  Write("third/tool", "#!/bin/sh\n", 0755);
  const Environment path("PATH", folder_ + "/missing:" + folder_ + "/first:" + folder_ +
                                     "/folder:" + folder_ + "/second:" + folder_ + "/third");
  EXPECT_EQ(ResolveCommand("tool").value(), second);
  EXPECT_THAT(RefusalOf("no_such_tool"), HasSubstr("command not found"));
}

TEST_F(ResolveCommandTest, SaysWhyNot) {
  EXPECT_THAT(RefusalOf(folder_ + "/missing"), HasSubstr("No such file"));
  EXPECT_THAT(RefusalOf(folder_), HasSubstr("not a program"));
  EXPECT_THAT(RefusalOf(Write("text", "text", 0644)), HasSubstr("chmod +x"));
}

// The loader ignores LD_PRELOAD for these: the program would run untraced without a word.
TEST_F(ResolveCommandTest, RefusesWhatCannotBeTraced) {
  EXPECT_THAT(RefusalOf(Write("static", Elf(false), 0755)), HasSubstr("statically linked"));
  EXPECT_THAT(RefusalOf(Write("setuid", Elf(true), 04755)), HasSubstr("set-uid"));
  EXPECT_THAT(RefusalOf(Write("setgid", Elf(true), 02755)), HasSubstr("set-gid"));
}

TEST_F(ResolveCommandTest, LeavesBrokenProgramsToTheKernel) {
  std::string cut = Elf(false);
  cut.resize(70);
  EXPECT_TRUE(ResolveCommand(Write("cut", cut, 0755)));
  EXPECT_TRUE(ResolveCommand(Write("old", Elf(false, ELFCLASS32), 0755)));
  EXPECT_TRUE(ResolveCommand(Write("empty", "", 0755)));
}

// --- Supervise

class SuperviseTest : public FolderTest {
 protected:
  // The C library: preloading it once more changes nothing.
  static std::string HarmlessLibrary() {
    Dl_info info{};
    EXPECT_NE(dladdr(dlsym(RTLD_DEFAULT, "getpid"), &info), 0);
    return info.dli_fname;
  }
  Result<Outcome> Run(std::vector<std::string> command) const {
    const Environment tmpdir("TMPDIR", folder_ + "/tmp");
    auto outcome = Supervise({.command = std::move(command),
                              .output_folder = folder_ + "/out",
                              .ring_bytes = 8192,
                              .library = HarmlessLibrary(),
                              .driver = {}});
    EXPECT_TRUE(fs::is_empty(folder_ + "/tmp")) << "the socket's folder is left";
    return outcome;
  }
  // Runs a script that must be run; `out` and `here` are variables of it.
  Outcome Shell(const std::string& script) const {
    const Environment here("here", folder_);
    auto outcome = Run({"/bin/sh", "-c", script});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return std::move(outcome).value();
  }
};

size_t OpenDescriptors() {
  const fs::directory_iterator first("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(first), end(first)));
}

TEST_F(SuperviseTest, ReturnsTheExitCode) {
  const size_t before = OpenDescriptors();
  for (const int code : {0, 3, 255}) {
    const Outcome outcome = Shell("exit " + std::to_string(code));
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_THAT(outcome.captures, IsEmpty());
    EXPECT_THAT(outcome.warnings, IsEmpty());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(SuperviseTest, ReturnsTheSignal) {
  EXPECT_EQ(Shell("kill -TERM $$").signal, SIGTERM);
  EXPECT_EQ(Shell("kill -KILL $$").signal, SIGKILL);
}

// The path of a socket has 107 characters.
TEST_F(SuperviseTest, WorksWhereTheFolderForTemporaryFilesHasALongName) {
  const std::string deep = folder_ + "/" + std::string(120, 'x');
  fs::create_directories(deep);
  const Environment tmpdir("TMPDIR", deep);
  const auto outcome = Supervise({.command = {"/bin/sh", "-c", "test -S \"$IKET_SOCKET\""},
                                  .output_folder = folder_ + "/out",
                                  .library = HarmlessLibrary(),
                                  .driver = {}});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->exit_code, 0);
}

TEST_F(SuperviseTest, HandsOnArguments) {
  const auto outcome = Run({"sh", "-c", "printf '%s|' \"$@\" > \"$0\"", folder_ + "/arguments",
                            "a b", "", "$HOME", "'"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(Read("arguments"), "a b||$HOME|'|");
}

TEST_F(SuperviseTest, SetsTheEnvironment) {
  Shell(
      "printf '%s\\n' \"$LD_PRELOAD\" \"$IKET_OUTPUT\" \"$IKET_RING_BYTES\" > \"$here/env\"; "
      "test -S \"$IKET_SOCKET\" && echo socket >> \"$here/env\"");
  EXPECT_EQ(Read("env"), HarmlessLibrary() + "\n" + folder_ + "/out\n8192\nsocket\n");
  EXPECT_EQ(getenv("IKET_SOCKET"), nullptr) << "only the program's own is changed";
}

TEST_F(SuperviseTest, KeepsLibrariesThatAreAlreadyPreloaded) {
  const Environment preload("LD_PRELOAD", HarmlessLibrary());
  Shell("echo \"$LD_PRELOAD\" > \"$here/env\"");
  EXPECT_EQ(Read("env"), HarmlessLibrary() + ":" + HarmlessLibrary() + "\n");
}

TEST_F(SuperviseTest, LeavesTheProgramItsSignals) {
  Shell("grep SigIgn /proc/self/status > \"$here/ignored\"");
  const auto mask = std::stoull(Read("ignored").substr(7), nullptr, 16);
  EXPECT_EQ(mask & (1u << (SIGINT - 1)), 0u);
  EXPECT_EQ(mask & (1u << (SIGQUIT - 1)), 0u);
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL) << "and is itself again";
}

TEST_F(SuperviseTest, DoesNotWaitForWhatTheProgramLeftRunning) {
  EXPECT_EQ(Shell("sleep 60 & echo $! > \"$here/pid\"; exit 5").exit_code, 5);
  EXPECT_EQ(kill(std::stoi(Read("pid")), SIGKILL), 0) << "it still runs";
}

// What a guest leaves in the output folder becomes a capture, with the program's end in it.
TEST_F(SuperviseTest, FinishesTheAccountsOfGuests) {
  {
    auto writer = capture::Writer::Create(folder_ + "/account").value();
    ASSERT_TRUE(writer.Append(capture::Session{.pid = 1, .start_ns = 5}));
    ASSERT_TRUE(writer.Finish());
  }
  const Outcome outcome = Shell(
      "cp \"$here/account\" \"$IKET_OUTPUT/iket_pid_0x$(printf %x $$).iketcap.part\"; exit 4");
  EXPECT_EQ(outcome.exit_code, 4);
  ASSERT_EQ(outcome.captures.size(), 1u);
  EXPECT_THAT(outcome.captures[0], StartsWith(folder_ + "/out/iket_pid_0x"));
  const auto reader = capture::Reader::Open(outcome.captures[0]);
  ASSERT_TRUE(reader) << reader.error().message;
  const capture::Session& session = reader->capture().sessions.front();
  EXPECT_TRUE(session.ended);
  EXPECT_EQ(session.exit_status, 4);
  EXPECT_EQ(session.start_ns, 5);
  EXPECT_GT(session.end_ns, 5);
}

TEST_F(SuperviseTest, WarnsOfAnAccountThatCannotBeRead) {
  const Outcome outcome = Shell("echo nonsense > \"$IKET_OUTPUT/iket_pid_0x1.iketcap.part\"");
  EXPECT_THAT(outcome.captures, IsEmpty());
  EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("iket_pid_0x1.iketcap.part")));
}

TEST_F(SuperviseTest, SaysWhenAProgramCannotBeRun) {
  const auto outcome = Run({Write("script", "#!/no/such/interpreter\n", 0755)});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(outcome.error().message, HasSubstr("cannot be run: No such file"));
  EXPECT_EQ(Run({folder_ + "/missing"}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Run({}).error().kind, ErrorKind::kUsage);
}

TEST_F(SuperviseTest, SaysWhenItsLibraryIsMissing) {
  const auto outcome = Supervise({.command = {"/bin/true"},
                                  .output_folder = folder_ + "/out",
                                  .library = folder_ + "/libiket_inject.so",
                                  .driver = {}});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kSystem);
  EXPECT_THAT(outcome.error().message, HasSubstr("libiket_inject.so: No such file"));
}

}  // namespace
}  // namespace iket::supervisor
