#include "session/finish.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "capture/mapped_sink.h"
#include "capture/reader.h"
#include "session/launch_log.h"
#include "session/message.h"

namespace iket::session {
namespace {

int64_t Now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

template <typename T>
Result<void> AppendRows(const std::vector<T>& rows, capture::Writer& writer) {
  if (rows.empty()) return {};
  return writer.Append(std::span(rows));
}

// What rings cannot be read without. Stated again, it replaces what was stated before.
Result<void> CopyObjects(const capture::Capture& facts, capture::Writer& writer) {
  for (const capture::Device& device : facts.devices) {
    if (auto done = writer.Append(device); !done) return done;
  }
  if (auto done = AppendRows(facts.images, writer); !done) return done;
  if (auto done = AppendRows(facts.kernels, writer); !done) return done;
  if (auto done = AppendRows(facts.filters, writer); !done) return done;
  if (auto done = AppendRows(facts.declarations, writer); !done) return done;
  if (auto done = AppendRows(facts.attributes, writer); !done) return done;
  if (auto done = AppendRows(facts.edges, writer); !done) return done;
  if (auto done = AppendRows(facts.contexts, writer); !done) return done;
  return AppendRows(facts.placed_sms, writer);
}

// Copies everything but launches and the session itself, of the rings what is in `part`.
Result<void> CopyAccount(const capture::Reader& account, capture::Writer& writer,
                         const Times* part) {
  const capture::Capture& facts = account.capture();
  if (auto done = CopyObjects(facts, writer); !done) return done;
  if (auto done = AppendRows(facts.graph_nodes, writer); !done) return done;
  if (auto done = AppendRows(facts.exchanges, writer); !done) return done;
  if (auto done = AppendRows(facts.counters, writer); !done) return done;
  if (auto done = AppendRows(facts.notes, writer); !done) return done;
  Result<void> result;
  account.ForEachRingBlock([&](const capture::RingBlock& block) {
    if (part != nullptr && !part->Have(block.moment.begin_ns, block.moment.context)) return true;
    std::vector<capture::RingContents> rings;
    for (const capture::RingRow& row : block.rows) {
      const uint64_t end = row.first + row.records.size() * uint64_t{ring::kRecordBytes};
      rings.push_back({.ring = row.ring,
                       .written = row.written,
                       .older = row.records,
                       .newer = {},
                       .lag_bytes = row.written - end,
                       .header = row.header});
    }
    result = writer.Append(block.moment, rings);
    return result.has_value();
  });
  return result;
}

// Appends launches, of kernels or graphs; those that are not in `part` as left out.
template <typename Launch>
Result<void> AppendLaunches(std::vector<Launch> launches, const Times* part,
                            capture::Writer& writer) {
  for (Launch& launch : launches) {
    if (part != nullptr && !part->Have(launch.host_ns, launch.context)) launch.left_out = true;
  }
  return AppendRows(launches, writer);
}

std::string TemporaryPath(const std::string& path) { return path + ".tmp"; }

// What is known so far of a session whose rings are about to be written, so that they can be read
// if nothing comes behind them: the disk may become full, or whoever writes be killed.
void StateEarly(const std::string& folder, uint32_t pid, capture::Writer& writer) {
  const auto account = capture::Reader::Open(SessionPath(folder, pid, kSuffixPart));
  if (!account) return;
  static_cast<void>(AppendRows(account->capture().sessions, writer));
  static_cast<void>(CopyObjects(account->capture(), writer));
}

// What somebody had begun who is gone now is a capture of its own, if there are rings in it. Its
// name, or nothing.
std::string KeepWhatWasBegun(const std::string& folder, uint32_t pid, const std::string& path) {
  {
    const auto begun = capture::Reader::Open(TemporaryPath(path));
    if (!begun || begun->ring_block_count() == 0) return "";
  }
  std::string kept = SessionPath(folder, pid, kSuffixStreamed);
  return std::rename(TemporaryPath(path).c_str(), kept.c_str()) == 0 ? kept : std::string();
}

Result<FinishedCapture> Join(const std::string& folder, uint32_t pid, const std::string& path,
                             const Ending* ending, const AppendRings& append_rings,
                             std::optional<capture::Writer> begun, const Times* part = nullptr) {
  auto account = capture::Reader::Open(SessionPath(folder, pid, kSuffixPart));
  if (!account) return tl::unexpected(account.error());
  std::string streamed;
  if (!begun) {
    if (ending != nullptr) streamed = KeepWhatWasBegun(folder, pid, path);
    auto writer = capture::Writer::Create(TemporaryPath(path));
    if (!writer) return tl::unexpected(writer.error());
    begun = std::move(*writer);
  }
  capture::Writer& writer = *begun;

  // A full disk fails the first call that meets it and is counted by the writer from then on: what
  // can be written still is, so errors are kept and the work goes on.
  Result<void> first_error;
  const auto keep = [&first_error](Result<void> result) {
    if (!result && first_error) first_error = std::move(result);
  };

  capture::Session session;
  if (!account->capture().sessions.empty()) session = account->capture().sessions.front();
  for (const capture::Device& device : account->capture().devices) {
    session.software_device |= device.simulated;
  }
  if (ending != nullptr) {
    session.ended = true;
    session.exit_status = ending->exit_status;
    session.signal = ending->signal;
    session.end_ns = ending->end_ns;
    session.end_realtime_ns = ending->end_realtime_ns;
  }
  keep(writer.Append(session));
  keep(CopyAccount(*account, writer, part));
  if (auto log = LaunchLog::Open(SessionPath(folder, pid, kSuffixLaunches))) {
    keep(AppendLaunches(log->Launches(), part, writer));
    keep(AppendLaunches(log->GraphLaunches(), part, writer));
    if (log->lost() > 0) {
      keep(writer.Append(capture::Counter{"launches that found the launch log full", log->lost()}));
    }
  } else {
    keep(writer.Append(capture::Note{.severity = capture::Severity::kWarning,
                                     .text = "no launch log: " + log.error().message}));
  }
  if (!streamed.empty()) {
    keep(writer.Append(capture::Note{
        .severity = capture::Severity::kWarning,
        .text = fmt::format("the rings had been streamed by a supervisor that is gone: what it had "
                            "read by then is in {}",
                            streamed)}));
  }
  keep(append_rings(writer));
  keep(writer.Finish());

  if (std::rename(TemporaryPath(path).c_str(), path.c_str()) != 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot rename to {}: {}", TemporaryPath(path), path,
                std::strerror(errno));
  }
  return FinishedCapture{.path = path,
                         .incomplete = first_error ? std::string() : first_error.error().message};
}

}  // namespace

bool Times::Have(int64_t ns, uint32_t context) const {
  return std::ranges::any_of(times, [&](const Time& time) {
    return time.begin_ns <= ns && ns <= time.end_ns &&
           (!time.contexts || std::ranges::find(*time.contexts, context) != time.contexts->end());
  });
}

int64_t NowNs() { return Now(CLOCK_MONOTONIC); }
int64_t NowRealtimeNs() { return Now(CLOCK_REALTIME); }

Result<FinishedCapture> FinishCapture(const std::string& folder, uint32_t pid, const Ending& ending,
                                      const AppendRings& append_rings,
                                      std::optional<capture::Writer> begun) {
  auto finished = Join(folder, pid, SessionPath(folder, pid, kSuffixCapture), &ending, append_rings,
                       std::move(begun));
  if (!finished) return finished;
  unlink(SessionPath(folder, pid, kSuffixPart).c_str());
  unlink(SessionPath(folder, pid, kSuffixLaunches).c_str());
  return finished;
}

Result<FinishedCapture> WriteSnapshot(const std::string& folder, uint32_t pid,
                                      const std::string& path, const AppendRings& append_rings,
                                      const Times* part) {
  return Join(folder, pid, path, nullptr, append_rings, std::nullopt, part);
}

Result<capture::Writer> BeginCapture(const std::string& folder, uint32_t pid, size_t threads,
                                     bool pack) {
  // Mapped memory takes twice the time of write(2), which threads cannot share
  // (bench/append_bench.cpp).
  constexpr size_t kManyThreads = 4;
  const std::string path = TemporaryPath(SessionPath(folder, pid, kSuffixCapture));
  const capture::WriterOptions options{
      .compression_level = 0, .shared = threads > 1, .pack_rings = pack};
  const auto make = [&]() -> Result<capture::Writer> {
    if (threads < kManyThreads) return capture::Writer::Create(path, options);
    auto sink = capture::MappedSink::Create(path);
    if (!sink) return tl::unexpected(sink.error());
    return capture::Writer::Create(std::move(*sink), options);
  };
  auto writer = make();
  if (writer) StateEarly(folder, pid, *writer);
  return writer;
}

}  // namespace iket::session
