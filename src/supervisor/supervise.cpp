#include "supervisor/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "session/control.h"
#include "session/finish.h"
#include "session/launch_log.h"
#include "session/message.h"
#include "supervisor/command.h"
#include "supervisor/drain.h"
#include "supervisor/guests.h"
#include "supervisor/hang_watch.h"
#include "supervisor/place_cache.h"
#include "supervisor/program.h"
#include "supervisor/ring_memory.h"

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using session::RingMemory;

// Of passes over the rings: where one was fuller of news than kHurry, the next pass follows at
// once; else kPause is waited, twice as long after each that brought nothing, until that is four
// times what a pass takes, so that an idle program costs a fifth of a core, and never over
// kLongestPause. Meanwhile the headers are looked at every kPause: a kernel that begins is seen.
constexpr double kHurry = 0.1;
constexpr int kIdleShare = 4;
constexpr std::chrono::milliseconds kPause{2}, kLongestPause{16};
// After a connection could not be taken.
constexpr std::chrono::milliseconds kBreath{50};
constexpr std::chrono::seconds kBetweenExchanges{10};

// Pids of which the folder holds a file with this suffix.
std::vector<uint32_t> PidsOf(const std::string& folder, std::string_view suffix,
                             std::error_code& error) {
  std::vector<uint32_t> pids;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    unsigned pid = 0;
    int end = 0;
    if (std::sscanf(name.c_str(), "iket_pid_0x%x%n", &pid, &end) == 1 &&
        name.substr(static_cast<size_t>(end)) == suffix) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// Each process has two descriptors a context, and there may be hundreds.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Supervision {
 public:
  Supervision(const Options& options, Guests guests, session::ControlSocket control)
      : options_(options),
        guests_(std::move(guests)),
        control_(std::move(control)),
        windows_(options.driver) {
    if (options.stream) drain_.emplace(options.output_folder, windows_);
    if (options.hang.count() > 0) hang_.emplace(options.hang, windows_);
  }

  Result<Outcome> Run(pid_t child, const SignalGuard& signals) {
    child_ = child;
    // While the program does the same, where the driver will be needed before it ends.
    if (options_.stream || hang_) windows_.OpenSoon();
    const int ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    if (ended < 0) return Fail(ErrorKind::kSystem, "pidfd_open: {}", std::strerror(errno));
    for (bool over = false; !over;) {
      bool asked = false;
      Serve({ended, signals.user_signal(), control_.descriptor()}, Wait(), [&](size_t which) {
        if (which == 0) over = true;
        if (which == 1) {
          signals.TakeUserSignal();
          Announce(Snapshot(0));
        }
        if (which == 2) {
          asked = true;
        }
      });
      if (asked) {
        // What a guest has said before it asked is heard before it is answered.
        while (Serve({}, std::chrono::milliseconds(0), {})) {
        }
        control_.Serve([this](std::string_view request) { return Answer(request); });
      }
      TakeFarewells();
      const std::vector<uint32_t> gone = guests_.TakeEnded();
      for (const uint32_t pid : gone) {
        // Of the program itself, how it ended is asked first.
        if (session::PidOf(pid) != static_cast<uint32_t>(child)) Finish(pid, {}, false);
      }
      DrainIfDue();
      LookForHangs();
    }
    close(ended);
    while (Serve({}, std::chrono::milliseconds(0), {})) {
    }
    TakeFarewells();
    int status = 0;
    waitpid(child, &status, 0);
    signals.ForgetChild();
    if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
    if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
    FinishAll(status);
    return std::move(outcome_);
  }

 private:
  // Waits for one of `others` or for a guest; calls `ready` with the index of each that is. True if
  // something was done.
  bool Serve(const std::vector<int>& others, std::chrono::milliseconds wait,
             const std::function<void(size_t)>& ready) {
    std::vector<pollfd> polled;
    for (const int other : others) polled.push_back({other, POLLIN, 0});
    if (!breathless_) {
      for (const int guest : guests_.Descriptors()) polled.push_back({guest, POLLIN, 0});
    }
    if (std::exchange(breathless_, false)) {
      wait = wait.count() < 0 ? kBreath : std::min(wait, kBreath);
    }
    if (poll(polled.data(), polled.size(), static_cast<int>(wait.count())) <= 0) return false;
    bool done = false;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (i < others.size()) {
        ready(i);
      } else if (!guests_.Receive(polled[i].fd)) {
        breathless_ = true;
        continue;
      }
      done = true;
    }
    outcome_.guests |= !guests_.contexts().empty();
    return done;
  }

  // Until there is something to do by the clock; -1: for ever.
  std::chrono::milliseconds Wait() const {
    std::optional<Clock::time_point> due;
    if (options_.stream && !guests_.contexts().empty()) due = std::min(next_drain_, next_probe_);
    if (hang_ && !guests_.contexts().empty()) due = std::min(due.value_or(next_look_), next_look_);
    if (!due) return std::chrono::milliseconds(-1);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }

  void DrainIfDue() {
    if (!options_.stream || guests_.contexts().empty()) return;
    const Clock::time_point begin = Clock::now();
    if (begin < next_drain_) {
      if (begin < next_probe_) return;
      next_probe_ = begin + kPause;
      if (!drain_->HasNewHeaders(guests_.contexts())) return;
    }
    const Drain::News news = drain_->Pass(guests_.contexts());
    const Clock::time_point end = Clock::now();
    const auto longest =
        std::clamp<Clock::duration>(kIdleShare * (end - begin), kPause, kLongestPause);
    ExchangeClocksIfDue(end);
    pause_ = news.records == 0 ? std::min(2 * pause_, longest) : kPause;
    next_drain_ = news.fullest > kHurry ? end : end + pause_;
    next_probe_ = end + kPause;
  }

  // While rings are followed, so that clocks that do not go evenly are known between the program's
  // beginning and its end. It takes the GPU from the program for some 0.4 ms.
  void ExchangeClocksIfDue(Clock::time_point now) {
    if (now < next_exchange_) return;
    if (next_exchange_ != Clock::time_point()) {
      for (const RingMemory& memory : guests_.contexts()) {
        const auto window = windows_.Find(memory);
        const auto exchange = window ? (*window)->ExchangeClocks() : std::nullopt;
        if (exchange) drain_->Append(memory.pid, *exchange);
      }
    }
    next_exchange_ = now + kBetweenExchanges;
  }

  void TakeFarewells() {
    for (const session::Farewell& farewell : guests_.TakeFarewells()) {
      if (farewell.rings_read) {
        read_.insert_or_assign(farewell.pid, farewell.launches);
        continue;
      }
      // The window of such a process is opened while it ends: the driver takes its time for both.
      for (const RingMemory& memory : guests_.ContextsOf(farewell.pid)) {
        static_cast<void>(windows_.Find(memory));  // why not is said when it is read
      }
    }
  }

  // The process has read its rings when all that it launched had ended, and launched nothing since.
  bool HasReadItself(uint32_t pid) const {
    const auto found = read_.find(pid);
    if (found == read_.end()) return false;
    const auto log = session::LaunchLog::Open(
        session::SessionPath(options_.output_folder, pid, session::kSuffixLaunches));
    return log && log->next_sequence() == found->second;
  }

  void LookForHangs() {
    if (!hang_ || guests_.contexts().empty() || Clock::now() < next_look_) return;
    for (const RingMemory& memory : guests_.contexts()) {
      if (!hang_->Look(memory, Clock::now())) continue;
      const auto snapshot = Snapshot(session::PidOf(memory.pid));
      if (!snapshot) {
        Say(snapshot.error().message);
        continue;
      }
      Say(fmt::format(
          "process {} has running warps and recorded nothing for {} s: see iket report {}",
          session::PidOf(memory.pid), std::chrono::duration<double>(hang_->patience()).count(),
          *snapshot));
    }
    next_look_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(hang_->period());
  }

  void Say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }
  void Announce(const Result<std::string>& snapshot) const {
    Say(snapshot ? "snapshot: " + *snapshot : "no snapshot: " + snapshot.error().message);
  }

  Result<std::string> Answer(std::string_view untrusted_request) {
    using session::kFlushRequest, session::kOwnSnapshotRequest, session::kSnapshotRequest;
    for (const std::string_view known : {kSnapshotRequest, kOwnSnapshotRequest, kFlushRequest}) {
      if (!untrusted_request.starts_with(known)) continue;
      const std::string number(untrusted_request.substr(known.size()));
      uint32_t session = 0;
      const char* const end = number.data() + number.size();
      const auto parsed = std::from_chars(number.data(), end, session);
      if (parsed.ec != std::errc() || parsed.ptr != end) {
        return Fail(ErrorKind::kUsage, "no number of a process");
      }
      if (known == kSnapshotRequest) return Snapshot(session);
      if (guests_.ContextsOf(session).empty()) {
        return Fail(ErrorKind::kNothing, "this process has no rings that are known here, so far");
      }
      return known == kFlushRequest ? Flush(session) : SnapshotOf(session);
    }
    return Fail(ErrorKind::kUsage, "no request that this iket knows");
  }

  // Everything in the rings of a session goes into its capture, which is begun if need be.
  Result<std::string> Flush(uint32_t session) {
    const std::vector<RingMemory> contexts = guests_.ContextsOf(session);
    for (const RingMemory& memory : contexts) {
      if (auto window = windows_.Find(memory); !window) return tl::unexpected(window.error());
    }
    if (!drain_) drain_.emplace(options_.output_folder, windows_);
    flushed_.insert(session);
    // Twice: what was too near to the newest record of a ring that came around comes behind it.
    drain_->Pass(contexts);
    drain_->Pass(contexts);
    std::vector<std::string> warnings = drain_->TakeWarnings();
    if (warnings.empty()) return std::string();
    Error error{.kind = ErrorKind::kSystem, .message = warnings.front()};
    for (std::string& warning : warnings) Warn(std::move(warning));
    return tl::unexpected(std::move(error));
  }

  // Of one process; of each that has rings for any other number, such as the shell's that runs
  // them. The paths, a line each.
  Result<std::string> Snapshot(uint32_t wanted) {
    std::vector<uint32_t> pids;
    for (const RingMemory& memory : guests_.contexts()) {
      if (std::ranges::find(pids, memory.pid) == pids.end()) pids.push_back(memory.pid);
    }
    const auto is_wanted = [wanted](uint32_t pid) { return session::PidOf(pid) == wanted; };
    if (std::ranges::any_of(pids, is_wanted)) std::erase_if(pids, std::not_fn(is_wanted));
    if (pids.empty()) {
      return Fail(ErrorKind::kNothing,
                  "no process of this run has loaded code that can be traced, so far");
    }
    std::string paths;
    for (const uint32_t pid : pids) {
      const auto path = SnapshotOf(pid);
      if (!path) return path;
      paths += (paths.empty() ? "" : "\n") + *path;
    }
    return paths;
  }

  // The path.
  Result<std::string> SnapshotOf(uint32_t pid) {
    const std::string suffix = fmt::format("_snapshot{}.iketcap", ++snapshots_[pid]);
    std::string path = session::SessionPath(options_.output_folder, pid, suffix.c_str());
    const auto written = session::WriteSnapshot(
        options_.output_folder, pid, path,
        [&](capture::Writer& writer) { return AppendAll(pid, true, writer); });
    if (!written) return tl::unexpected(written.error());
    outcome_.snapshots.push_back(path);
    return fs::absolute(path).string();  // whoever asks may be in another folder
  }

  // The rings of all contexts of one guest. What cannot be read is a note, not an error.
  Result<void> AppendAll(uint32_t pid, bool live, capture::Writer& writer) {
    Result<void> result;
    // Behind what it has read itself.
    const uint64_t moment = read_.contains(pid) ? 1 : 0;
    for (const RingMemory& memory : guests_.ContextsOf(pid)) {
      auto window = windows_.Find(memory);
      auto done = window ? AppendRings(**window, live, moment, writer)
                         : Result<void>(tl::unexpected(window.error()));
      if (done) done = AppendExchange(**window, writer);
      if (done) continue;
      Warn(NotRead(memory, done.error().message));
      auto noted = writer.Append(capture::Note{.severity = capture::Severity::kWarning,
                                               .time_ns = session::NowNs(),
                                               .text = outcome_.warnings.back()});
      if (!noted && result) result = noted;
    }
    return result;
  }

  static Result<void> AppendExchange(const RingWindow& window, capture::Writer& writer) {
    const auto exchange = window.ExchangeClocks();
    return exchange ? writer.Append(*exchange) : Result<void>();
  }

  // Where the SMs of its contexts sit. Found out once for each GPU, when the program has ended.
  Result<void> AppendPlaces(uint32_t pid, bool live, capture::Writer& writer) {
    for (const RingMemory& memory : guests_.ContextsOf(pid)) {
      std::vector<capture::SmPlace> places = cache_.Load(memory.device_uuid, memory.sm_count);
      if (places.empty() && !live) {
        if (const auto window = windows_.Find(memory)) places = (*window)->FindPlaces();
        if (!places.empty()) cache_.Keep(memory.device_uuid, places);
      }
      if (std::ranges::all_of(places, [](const auto& place) { return place.gpc < 0; })) continue;
      std::vector<capture::PlacedSm> rows;
      for (const capture::SmPlace& place : places) {
        rows.push_back(
            {.context = memory.context, .sm = static_cast<uint32_t>(rows.size()), .place = place});
      }
      if (auto done = writer.Append(std::span<const capture::PlacedSm>(rows)); !done) return done;
    }
    return {};
  }

  void Warn(std::string warning) { outcome_.warnings.push_back(std::move(warning)); }

  // Makes the capture of a process that has ended, or of one that outlives the program (`live`).
  void Finish(uint32_t pid, session::Ending ending, bool live) {
    ending.end_ns = session::NowNs();
    ending.end_realtime_ns = session::NowRealtimeNs();
    std::optional<capture::Writer> begun;
    const bool is_begun = options_.stream || flushed_.erase(pid) != 0;
    if (is_begun) begun = drain_->Finish(pid, guests_.ContextsOf(pid), live);
    const bool is_read = is_begun || HasReadItself(pid);
    const auto append = [&](capture::Writer& writer) {
      const Result<void> rings = is_read ? Result<void>() : AppendAll(pid, live, writer);
      const Result<void> places = AppendPlaces(pid, live, writer);
      return rings ? places : rings;
    };
    const auto finished =
        session::FinishCapture(options_.output_folder, pid, ending, append, std::move(begun));
    windows_.Forget(pid);
    guests_.Forget(pid);
    if (!finished) {
      Warn(finished.error().message);
      return;
    }
    if (!finished->incomplete.empty()) {
      Warn(fmt::format("{}: incomplete: {}", finished->path, finished->incomplete));
    }
  }

  void FinishAll(int status) {
    std::error_code error;
    const std::vector<uint32_t> left = PidsOf(options_.output_folder, session::kSuffixPart, error);
    for (const uint32_t pid : left) {
      session::Ending ending;
      const bool is_child = session::PidOf(pid) == static_cast<uint32_t>(child_);
      // How the process ended is how the last program ended that it executed.
      const bool is_last = std::ranges::none_of(left, [pid](uint32_t other) {
        return other > pid && session::PidOf(other) == session::PidOf(pid);
      });
      if (is_child && is_last) {
        ending.exit_status = WIFEXITED(status) ? outcome_.exit_code : -1;
        ending.signal = outcome_.signal;
      }
      Finish(pid, ending, !is_child && kill(static_cast<pid_t>(session::PidOf(pid)), 0) == 0);
    }
    // Guests that lost us (a daemon closes descriptors that it does not know) finish on their own.
    for (const uint32_t pid : PidsOf(options_.output_folder, session::kSuffixCapture, error)) {
      outcome_.captures.push_back(
          session::SessionPath(options_.output_folder, pid, session::kSuffixCapture));
    }
    if (error) {
      Warn(fmt::format("{}: cannot be read any more: {}", options_.output_folder, error.message()));
    }
    // Whoever handed rings over and has left no account.
    std::vector<uint32_t> lost;
    for (const RingMemory& memory : guests_.contexts()) {
      if (std::ranges::find(lost, memory.pid) == lost.end()) lost.push_back(memory.pid);
    }
    for (const uint32_t pid : lost) {
      Warn(fmt::format("process {}: its account in {} is gone, and with it what was recorded", pid,
                       options_.output_folder));
    }
    if (guests_.refused() != 0) {
      Warn(
          "some processes could not be taken for want of file descriptors (ulimit -n): what they "
          "could not read themselves is lost");
    }
    if (drain_) {
      for (std::string& warning : drain_->TakeWarnings()) Warn(std::move(warning));
    }
  }

  const Options& options_;
  Guests guests_;
  session::ControlSocket control_;
  RingWindows windows_;
  PlaceCache cache_ = PlaceCache::OfUser();
  std::optional<Drain> drain_;         // with options_.stream, or once somebody has asked to flush
  std::set<uint32_t> flushed_;         // sessions whose rings go through it without options_.stream
  std::map<uint32_t, uint64_t> read_;  // sessions that read their rings themselves; launches then
  std::optional<HangWatch> hang_;
  Clock::time_point next_drain_, next_probe_, next_look_, next_exchange_;
  Clock::duration pause_ = kPause;
  bool breathless_ = false;  // a guest could not be taken: look at none of them for a moment
  pid_t child_ = 0;
  std::map<uint32_t, uint32_t> snapshots_;  // taken of each process
  Outcome outcome_;
};

}  // namespace

Result<Outcome> Supervise(const Options& options) {
  if (options.command.empty()) return Fail(ErrorKind::kUsage, "no command");
  const auto program = ResolveCommand(options.command.front());
  if (!program) return tl::unexpected(program.error());
  SocketFolder folder;
  if (auto made = folder.Create(); !made) return tl::unexpected(made.error());
  Options run = options;
  if (!options.driver.empty()) {
    const fs::path driver(options.driver);
    const auto nameable = folder.Nameable(driver.parent_path(), "driver");
    if (!nameable) return tl::unexpected(nameable.error());
    run.driver = fs::path(*nameable) / driver.filename();
  }
  auto guests = Guests::Listen(folder.guests());
  if (!guests) return tl::unexpected(guests.error());
  auto control = session::ControlSocket::Listen(folder.control());
  if (!control) return tl::unexpected(control.error());
  const SignalGuard signals;
  const auto child = StartProgram(*program, run, folder, signals);
  if (!child) return tl::unexpected(child.error());
  RaiseDescriptorLimit();
  Supervision supervision(run, std::move(*guests), std::move(*control));
  return supervision.Run(*child, signals);
}

}  // namespace iket::supervisor
