#include "cli/trial.h"

#include <cuda.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <iket/embed.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/read_file.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "supervisor/installation.h"

namespace iket::cli {
namespace {

constexpr uint32_t kCtas = 4, kThreads = 96, kRounds = 5, kWarps = kCtas * kThreads / 32;
constexpr unsigned kSecondsAtMost = 60;

// An event that a warp of the kernel records.
struct Expected {
  std::string_view name;
  trace::EventKind kind;
  uint64_t payload;
  std::vector<uint64_t> more{};  // values behind it
};

uint32_t ResultOf(uint32_t thread) {
  uint32_t sum = thread;
  for (uint32_t k = 0; k < kRounds; ++k) sum = sum * 1664525u + 1013904223u + k;
  return sum;
}

std::vector<Expected> EventsOf(uint32_t cta, uint32_t warp) {
  using trace::EventKind;
  std::vector<Expected> events{{"begun", EventKind::kMark, 0}};
  for (uint32_t k = 0; k < kRounds; ++k) {
    events.push_back({"round", EventKind::kRangeBegin, k});
    events.push_back({"odd", EventKind::kMark, warp * 32 + 1});  // of the first active lane
    events.push_back({"round", EventKind::kRangeEnd, 0});
  }
  events.push_back({"last", EventKind::kTokenBegin, kRounds});
  events.push_back({"last", EventKind::kTokenEnd, kRounds + 1});
  const auto wide = [cta](unsigned bit) { return (uint64_t{1} << bit) + cta; };
  events.push_back({"wide", EventKind::kMark, wide(40)});
  events.push_back({"tile", EventKind::kMark, warp, {wide(41), kRounds}});
  events.push_back({"both", EventKind::kTokenBegin, wide(42), {warp}});
  events.push_back({"both", EventKind::kTokenEnd, wide(43), {warp + 1}});
  if (warp == 0) events.push_back({"spoken", EventKind::kMark, cta});
  for (uint32_t lane = 0; warp == 1 && lane < 32; ++lane) {
    events.push_back({"each", EventKind::kMark, lane, {ResultOf(warp * 32 + lane)}});
  }
  return events;
}

// Values of an event behind its payload.
std::vector<uint64_t> MoreOf(const trace::Model& model, uint32_t event) {
  std::vector<uint64_t> more;
  const auto [first, last] = model.values.Of(event);
  for (size_t i = first; i < last; ++i) {
    if (model.values.index[i] != trace::Values::kPayload) more.push_back(model.values.value[i]);
  }
  return more;
}

// What is wrong with the capture; empty if it is what the kernel did.
std::string Compare(const trace::Model& model) {
  if (model.launches.size() != 1) return Counted(model.launches.size(), "launch", "launches");
  if (model.launches[0].completeness != trace::Completeness::kComplete) {
    return "its launch is not complete";
  }
  if (model.warps.size() != kWarps) return Counted(model.warps.size(), "warp");
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t cta = model.warps.cta_x[warp], index = model.warps.index[warp];
    const std::vector<Expected> expected = EventsOf(cta, index);
    const auto where = fmt::format("warp {} of CTA {}", index, cta);
    if (model.warps.event_count[warp] != expected.size()) {
      return fmt::format("{} has {}, not {}", where,
                         Counted(model.warps.event_count[warp], "event"), expected.size());
    }
    for (uint32_t i = 0; i < expected.size(); ++i) {
      const uint32_t event = model.warps.first_event[warp] + i;
      const uint32_t row = model.events.declaration[event];
      const uint64_t payload = model.events.payload[event];
      if (model.DeclarationName(row) != expected[i].name ||
          model.declarations[row].kind != expected[i].kind || payload != expected[i].payload) {
        return fmt::format("event {} of {} is {} with {}, not {} with {}", i, where,
                           model.DeclarationName(row), payload, expected[i].name,
                           expected[i].payload);
      }
      if (MoreOf(model, event) != expected[i].more) {
        return fmt::format("values of event {} of {}, {}, are not those that it was given", i,
                           where, expected[i].name);
      }
    }
  }
  return {};
}

// A folder that is gone with this.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const auto place = std::filesystem::temp_directory_path(error);
    std::string path = (place / "iket_trial_XXXXXX").string();
    if (!error && mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// While it lives, signals that ask this process to end end its child first.
class Signals {
 public:
  Signals() {
    child_ = 0;
    asked_ = 0;
    struct sigaction action{};
    action.sa_handler = [](int signal) {
      asked_ = signal;
      if (child_ > 0) kill(child_, SIGKILL);
    };
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
    signal(SIGCHLD, SIG_DFL);  // or nobody is left to be waited for
  }
  ~Signals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void SetChild(pid_t child) { child_ = child; }
  static int asked() { return asked_; }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  static volatile sig_atomic_t child_, asked_;
  struct sigaction before_[std::size(kSignals)] = {};
};
volatile sig_atomic_t Signals::child_ = 0, Signals::asked_ = 0;

// The last words of a process.
std::string LastLine(std::string said) {
  while (!said.empty() && said.back() == '\n') said.pop_back();
  said.erase(0, said.rfind('\n') + 1);
  if (said.starts_with("iket: ")) said.erase(0, std::string_view("iket: ").size());
  return said;
}

// What became of a process that did not end well.
Trial Ended(int status, const std::string& said) {
  using Verdict = Trial::Verdict;
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) {
      return {Verdict::kFailed,
              fmt::format("the kernel did not end within {} seconds", kSecondsAtMost)};
    }
    return {Verdict::kFailed, fmt::format("the process was ended by signal {}", WTERMSIG(status))};
  }
  const std::string why = LastLine(said);
  return {WEXITSTATUS(status) == kExitFound ? Verdict::kFailed : Verdict::kNotTried,
          why.empty() ? fmt::format("exit code {}", WEXITSTATUS(status)) : why};
}

// Keeps the first thing that went wrong.
class Driver {
 public:
  bool Good(CUresult result, const char* function) {
    if (result == CUDA_SUCCESS) return true;
    const char* name = nullptr;
    const auto name_of = IKET_EMBED(cuGetErrorName);
    if (name_of != nullptr) name_of(result, &name);
    why_ = fmt::format("{}: {}", function, name != nullptr ? name : "an unknown error");
    return false;
  }
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};
#define GOOD(function, ...) driver.Good(IKET_EMBED(function)(__VA_ARGS__), #function)

// What went wrong; empty if nothing did.
std::string RunKernel(uint32_t gpu, const std::string& code) {
  Driver driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr memory = 0;
  uint32_t rounds = kRounds;
  void* arguments[] = {&memory, &rounds};
  std::array<uint32_t, kCtas * kThreads> results{};
  const bool done =
      GOOD(cuInit, 0) && GOOD(cuDeviceGet, &device, static_cast<int>(gpu)) &&
      GOOD(cuDevicePrimaryCtxRetain, &context, device) && GOOD(cuCtxSetCurrent, context) &&
      GOOD(cuModuleLoadData, &module, code.data()) &&
      GOOD(cuModuleGetFunction, &kernel, module, "iket_trial") &&
      GOOD(cuMemAlloc, &memory, sizeof results) &&
      GOOD(cuLaunchKernel, kernel, kCtas, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr) &&
      GOOD(cuCtxSynchronize) && GOOD(cuMemcpyDtoH, results.data(), memory, sizeof results);
  if (!done) return driver.why();
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (results[i] != ResultOf(i % kThreads)) return "the kernel's results are wrong";
  }
  return {};
}
#undef GOOD

Trial Try(uint32_t gpu, const std::string& self, const std::string& folder, Signals& signals) {
  using Verdict = Trial::Verdict;
  if (folder.empty()) {
    return {Verdict::kNotTried, "no folder for its capture could be made: look at TMPDIR"};
  }
  const std::string capture = folder + "/trial.iketcap", said = folder + "/said";
  const std::string number = std::to_string(gpu);
  const pid_t child = fork();
  if (child == 0) {
    const int output = open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (output >= 0) dup2(output, STDERR_FILENO);
    execl(self.c_str(), "iket", "doctor", "--trial-of", number.c_str(), capture.c_str(), nullptr);
    _exit(127);
  }
  if (child < 0) return {Verdict::kNotTried, "no process could be made"};
  signals.SetChild(child);
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
    if (errno != EINTR) return {Verdict::kNotTried, "its process could not be waited for"};
  }
  signals.SetChild(0);
  if (status != 0) return Ended(status, ReadFile(said));
  const auto loaded = Load(capture);
  if (!loaded) return {Verdict::kNotTried, loaded.error().message};
  if (loaded->model.launches.empty()) {
    return {Verdict::kNotTried, "nothing is in its capture: limits of memory or of files?"};
  }
  if (std::string wrong = Compare(loaded->model); !wrong.empty()) {
    return {Verdict::kFailed, "its capture is wrong: " + wrong};
  }
  return {Verdict::kPassed,
          fmt::format("{} and {} of a kernel with marks, as they must be", Counted(kWarps, "warp"),
                      Counted(loaded->model.events.size(), "event"))};
}

}  // namespace

Result<int> RunTrial(uint32_t gpu, const std::string& capture) {
  alarm(kSecondsAtMost);
  // What somebody wants of programs is not meant for this one.
  for (const char* name : {"IKET_SELECTION", "IKET_COLLECTOR", "IKET_RING_BYTES",
                           "IKET_MEMORY_BYTES", "IKET_FLIGHT"}) {
    unsetenv(name);
  }
  const auto collector = supervisor::FindCollector();
  if (!collector) return tl::unexpected(collector.error());
  const auto image = supervisor::FindTrialImage();
  if (!image) return tl::unexpected(image.error());
  const std::string code = ReadFile(*image);
  const std::string folder = std::filesystem::path(capture).parent_path().string();
  iket_embed_options options{};
  options.size = sizeof options;
  options.library = collector->c_str();
  options.folder = folder.c_str();
  if (const char* why = iket_embed_open(&options); why != nullptr) {
    return Fail(ErrorKind::kSystem, "{}", why);
  }
  if (const std::string why = RunKernel(gpu, code); !why.empty()) {
    PrintError(why);
    return kExitFound;
  }
  if (const char* why = iket_embed_write(capture.c_str()); why != nullptr) {
    return Fail(ErrorKind::kSystem, "{}", why);
  }
  return kExitDone;
}

Trial TryGpu(uint32_t gpu, const std::string& self) {
  Trial trial;
  {
    Signals signals;
    const Scratch folder;
    trial = Try(gpu, self, folder.path(), signals);
  }
  if (Signals::asked() != 0) raise(Signals::asked());
  return trial;
}

}  // namespace iket::cli
