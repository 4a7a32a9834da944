#include "export/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/utf8.h"
#include "base/write_signals.h"
#include "export/edges.h"
#include "export/launches.h"
#include "export/occurrences.h"
#include "export/sqlite_database.h"
#include "export/sqlite_schema.h"
#include "export/tracks.h"
#include "export/values.h"
#include "trace/counters.h"
#include "trace/edge_links.h"

namespace iket::exporter {
namespace {

using trace::kNoRow;

// Text as SQLite's own functions take it: they end at a zero.
std::string Mended(std::string_view untrusted) {
  std::string text;
  while (!untrusted.empty()) {
    const size_t length = untrusted.front() == '\0' ? 0 : Utf8Length(untrusted);
    text += length == 0 ? std::string_view("\xef\xbf\xbd") : untrusted.substr(0, length);
    untrusted.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string_view KindName(trace::EventKind kind) {
  constexpr std::string_view kNames[] = {"mark",      "push",        "pop",          "range_begin",
                                         "range_end", "token_begin", "token_end",    "flow_out",
                                         "flow_in",   "sync",        "token_either", "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view TypeName(trace::PayloadType type) {
  constexpr std::string_view kNames[] = {"none", "u32", "s32", "f32", "u64", "s64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

// One INSERT, filled cell by cell. The first error stays in the database's own words.
class Insert {
 public:
  Insert(sqlite3* database, std::string_view table, int columns)
      : statement_(database,
                   fmt::format("INSERT INTO {} VALUES (?{})", table, Marks(columns - 1))) {}

  Insert& operator<<(std::nullptr_t) {
    sqlite3_bind_null(statement_.get(), ++column_);
    return *this;
  }
  Insert& operator<<(std::string_view text) {
    const std::string mended = Mended(text);
    sqlite3_bind_text64(statement_.get(), ++column_, mended.data(), mended.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
    return *this;
  }
  Insert& operator<<(double number) {
    sqlite3_bind_double(statement_.get(), ++column_, number);
    return *this;
  }
  template <typename T>
    requires std::integral<T>
  Insert& operator<<(T number) {
    sqlite3_bind_int64(statement_.get(), ++column_, static_cast<int64_t>(number));
    return *this;
  }
  template <typename T>
  Insert& operator<<(const std::optional<T>& value) {
    return value ? *this << *value : *this << nullptr;
  }
  // A row that may be none.
  Insert& Row(uint32_t row) { return row == kNoRow ? *this << nullptr : *this << row; }
  Insert& Known(std::string_view text) { return text.empty() ? *this << nullptr : *this << text; }

  bool Done() {
    column_ = 0;
    const int result = statement_ ? sqlite3_step(statement_.get()) : SQLITE_ERROR;
    sqlite3_reset(statement_.get());
    return result == SQLITE_DONE;
  }

 private:
  static std::string Marks(int count) {
    std::string marks;
    for (int i = 0; i < count; ++i) marks += ",?";
    return marks;
  }

  Statement statement_;
  int column_ = 0;
};

class Writer {
 public:
  Writer(const trace::Model& model, sqlite3* database, const Progress& progress)
      : model_(model),
        database_(database),
        progress_(progress),
        occurrences_(model),
        values_(model),
        links_(trace::LinkEdges(model)) {}

  // False: sqlite3_errmsg() says why.
  bool Write() {
    return Run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA encoding = 'UTF-8';"
               "BEGIN EXCLUSIVE;") &&
           Run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};",
                           kSqliteApplication, kSqliteVersion)) &&
           Run(kSqliteTables) && WriteFacts() && WriteLaunches() && WriteWarps() && WriteEdges() &&
           Run(kSqliteIndices) && Run("COMMIT");
  }

 private:
  bool Run(std::string_view sql) {
    return sqlite3_exec(database_, std::string(sql).c_str(), nullptr, nullptr, nullptr) ==
           SQLITE_OK;
  }

  bool WriteFacts() {
    bool done = true, simulated = false;
    Insert device(database_, "device", 9), sm(database_, "sm", 9);
    for (size_t row = 0; row < model_.devices.size(); ++row) {
      const trace::Device& it = model_.devices[row];
      simulated |= it.simulated;
      device << row << model_.String(it.name) << model_.String(it.uuid) << it.index << it.sm_count
             << it.compute_major << it.compute_minor;
      device.Row(it.sm_clock_max_khz == 0 ? kNoRow : it.sm_clock_max_khz) << it.simulated;
      done = done && device.Done();
      for (uint32_t number = 0; number < it.clock_count; ++number) {
        done = done && WriteSm(sm, row, it, number);
      }
    }
    Insert capture(database_, "capture", 8);
    capture << model_.process_id << model_.String(model_.host) << model_.String(model_.command)
            << GlobalNs(model_, 0);
    if (model_.read_ns) {
      capture << TraceNs(model_, *model_.read_ns);
    } else {
      capture << nullptr;
    }
    capture << simulated;
    capture.Known(model_.String(model_.filter)).Known(model_.String(model_.damage));
    done = done && capture.Done();

    Insert kernel(database_, "kernel", 6);
    for (size_t row = 0; row < model_.kernels.size() && done; ++row) {
      const trace::Kernel& it = model_.kernels[row];
      kernel << row << model_.String(it.short_name) << model_.String(it.mangled)
             << model_.String(it.demangled);
      kernel.Known(model_.String(it.refusal)) << it.left_out;
      done = kernel.Done();
    }
    Insert declaration(database_, "declaration", 9);
    for (size_t row = 0; row < model_.declarations.size() && done; ++row) {
      const trace::Declaration& it = model_.declarations[row];
      declaration << row << model_.NameOf(it) << KindName(it.kind);
      declaration.Known(model_.String(it.category)).Known(model_.String(it.group));
      declaration.Known(model_.String(it.lane)).Known(model_.String(it.file));
      declaration.Row(it.line == 0 ? kNoRow : it.line).Row(it.colour);
      done = declaration.Done();
    }
    Insert counter(database_, "counter", 4);
    for (const trace::CounterInfo& info : trace::AllCounters()) {
      counter << info.name << model_.counters.*info.member << info.fault << info.meaning;
      done = done && counter.Done();
    }
    Insert health(database_, "health", 2);
    for (const HealthLine& line : HealthLines(model_, links_.counts)) {
      health << line.ns - GlobalNs(model_, 0) << line.text;
      done = done && health.Done();
    }
    Insert host_mark(database_, "host_mark", 3);
    for (const trace::HostMark& mark : model_.host_marks) {
      host_mark << (mark.ns ? std::optional(TraceNs(model_, *mark.ns)) : std::nullopt)
                << mark.host_ns << model_.String(mark.text);
      done = done && host_mark.Done();
    }
    return done;
  }

  bool WriteSm(Insert& sm, size_t row, const trace::Device& device, uint32_t number) {
    const trace::SmClock& clock = model_.clocks[device.first_clock + number];
    const trace::SmPlace place =
        number < device.places.size() ? device.places[number] : trace::SmPlace{};
    sm << row << number;
    sm.Row(static_cast<uint32_t>(place.gpc)).Row(static_cast<uint32_t>(place.tpc));
    sm << (clock.GHz() > 0 ? std::optional(clock.GHz()) : std::nullopt) << clock.pairs
       << clock.outliers << clock.residual_max_ns << clock.residual_rms_ns;
    return sm.Done();
  }

  bool WriteLaunches() {
    Insert launch(database_, "launch", 28);
    for (size_t row = 0; row < model_.launches.size(); ++row) {
      const trace::Launch& it = model_.launches[row];
      const bool logged = it.sequence != kNoRow;
      launch << row;
      launch.Row(it.sequence).Row(it.kernel) << it.device << it.context << it.grid_id;
      for (const auto& size : {it.grid, it.block, it.cluster}) {
        for (const uint32_t length : size) launch.Row(size[0] == 0 ? kNoRow : length);
      }
      const auto known = [&](uint64_t value) {
        return logged ? std::optional(value) : std::nullopt;
      };
      launch << known(it.dynamic_shared_bytes) << known(it.stream) << known(it.host_ns);
      launch.Row(it.graph).Row(it.node).Row(it.replay)
          << CompletenessWord(it.completeness)
          << (it.warps_expected != 0 ? std::optional(it.warps_expected) : std::nullopt)
          << it.warp_count << it.events_kept << it.lost_at_most << TraceNs(model_, it.first_ns)
          << TraceNs(model_, it.last_ns);
      if (!launch.Done()) return false;
    }
    return true;
  }

  bool WriteWarps() {
    const trace::Warps& warps = model_.warps;
    Insert insert(database_, "warp", 16), slice(database_, "slice", 14),
        instant(database_, "instant", 6), value(database_, "value", 5);
    for (uint32_t warp = 0; warp < warps.size(); ++warp) {
      const bool orphan = (warps.flags[warp] & trace::kWarpOrphan) != 0;
      const trace::Launch& launch = model_.launches[warps.launch[warp]];
      insert << warp << warps.launch[warp];
      for (const uint32_t place : model_.ClusterOf(warp)) {
        insert.Row(orphan || launch.cluster[0] == 0 ? kNoRow : place);
      }
      const uint32_t cta[] = {warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]};
      for (const uint32_t place : cta) insert.Row(orphan ? kNoRow : place);
      insert.Row(warps.index[warp]) << warps.sm[warp];
      insert.Row(warps.slot[warp] == trace::kNoSlot ? kNoRow : warps.slot[warp])
          << WarpState(warps.flags[warp]) << TraceNs(model_, warps.begin_ns[warp])
          << TraceNs(model_, warps.end_ns[warp]) << warps.begin_cycles[warp]
          << warps.end_cycles[warp];
      bool done = insert.Done();
      occurrences_.ForEach(warp, [&](const Occurrence& it) {
        done =
            done && (it.is_range() ? WriteSlice(slice, warp, it) : WriteInstant(instant, warp, it));
        done = done && WriteValues(value, it.event);
        if (it.is_range() && model_.ranges.end_event[it.range] != kNoRow) {
          done = done && WriteValues(value, model_.ranges.end_event[it.range]);
        }
      });
      if (!done) return false;
      if (progress_) progress_(warp + 1, warps.size());
    }
    return true;
  }
  bool WriteSlice(Insert& slice, uint32_t warp, const Occurrence& it) {
    const uint8_t flags = model_.ranges.flags[it.range];
    slice << it.range << warp << it.declaration << model_.ranges.depth[it.range]
          << TraceNs(model_, model_.NsOfWarp(warp, it.begin_cycles))
          << TraceNs(model_, model_.NsOfWarp(warp, it.end_cycles)) << it.begin_cycles
          << it.end_cycles << ((flags & trace::kRangeUnclosed) == 0)
          << ((flags & trace::kRangeCrossed) != 0) << ((flags & trace::kRangeToken) != 0)
          << ((flags & trace::kRangeCut) != 0) << it.event;
    slice.Row(model_.ranges.end_event[it.range]);
    return slice.Done();
  }
  bool WriteInstant(Insert& instant, uint32_t warp, const Occurrence& it) {
    instant << it.event << warp << it.declaration << KindWord(model_, it)
            << TraceNs(model_, model_.NsOfWarp(warp, it.begin_cycles)) << it.begin_cycles;
    return instant.Done();
  }
  // The payload stands at position 0, whether or not it is known.
  bool WriteValues(Insert& insert, uint32_t event) {
    int position = 1;
    for (const NamedValue& value : values_.Of(event)) {
      insert << event << (value.is_payload ? 0 : position) << value.name << TypeName(value.type);
      position += value.is_payload ? 0 : 1;
      PutNumber(insert, value);
      if (!insert.Done()) return false;
    }
    return true;
  }
  static void PutNumber(Insert& insert, const NamedValue& value) {
    const auto low = static_cast<uint32_t>(value.bits);
    const auto as_text = [&] {
      std::string text;
      AppendNumber(text, value.type, value.bits);
      insert << text;
    };
    switch (value.type) {
      case trace::PayloadType::kS32:
        insert << static_cast<int32_t>(low);
        return;
      case trace::PayloadType::kU64:
        if (value.bits > INT64_MAX) return as_text();
        insert << value.bits;
        return;
      case trace::PayloadType::kS64:
        insert << value.bits;
        return;
      case trace::PayloadType::kF32:
      case trace::PayloadType::kF64: {
        const double number = value.type == trace::PayloadType::kF32
                                  ? double{std::bit_cast<float>(low)}
                                  : std::bit_cast<double>(value.bits);
        if (!std::isfinite(number)) return as_text();
        insert << number;
        return;
      }
      default:
        insert << low;
    }
  }

  bool WriteEdges() {
    bool done = true;
    Insert flow(database_, "flow", 2);
    for (size_t i = 0; i < model_.flows.size() && done; ++i) {
      flow << model_.flows.from[i] << model_.flows.to[i];
      done = flow.Done();
    }
    Insert edge(database_, "edge", 6);
    for (size_t row = 0; row < model_.edges.size() && done; ++row) {
      const trace::DeclaredEdge& it = model_.edges[row];
      edge << row << model_.String(it.dag) << model_.String(it.from) << model_.String(it.to)
           << model_.String(it.label) << model_.String(it.via);
      done = edge.Done();
    }
    Insert link(database_, "edge_link", 3);
    for (const trace::EdgeLink& it : links_.links) {
      if (!done) break;
      link << it.edge << it.from << it.to;
      done = link.Done();
    }
    return done;
  }

  const trace::Model& model_;
  sqlite3* const database_;
  const Progress& progress_;
  const Occurrences occurrences_;
  EventValues values_;
  const trace::EdgeLinks links_;
};

tl::unexpected<Error> CannotWrite(const std::string& path, std::string_view why) {
  return Fail(ErrorKind::kSystem, "{}: cannot write: {}; choose another place with -o", path, why);
}

Result<void> Copy(int file, const std::string& path, const Sink& sink) {
  std::vector<char> block(1 << 20);
  for (off_t at = 0;;) {
    const ssize_t got = pread(file, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotWrite(path, std::strerror(errno));
    if (got == 0) return {};
    if (auto done = sink({block.data(), static_cast<size_t>(got)}); !done) return done;
    at += got;
  }
}

}  // namespace

Result<void> WriteSqlite(const trace::Model& model, const Sink& sink, const std::string& folder,
                         const Progress& progress) {
  std::error_code ignored;
  const std::filesystem::path where = folder.empty() ? std::filesystem::temp_directory_path(ignored)
                                                     : std::filesystem::path(folder);
  std::string path = where / ".iket_sqlite_XXXXXX";
  const Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file.is_open()) return CannotWrite(where.string(), std::strerror(errno));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, "unix-none");
  Database database(opened);
  unlink(path.c_str());  // SQLite and we have it open: it is gone with the process
  if (code != SQLITE_OK) return CannotWrite(where.string(), sqlite3_errstr(code));
  {
    const WriteSignalGuard guard;  // a file size limit is an error to be told, not a death
    if (!Writer(model, database.get(), progress).Write()) {
      const std::string why = sqlite3_errmsg(database.get());
      const int system = sqlite3_system_errno(database.get());
      return CannotWrite(where.string(), system != 0 ? std::strerror(system) : why);
    }
  }
  database.reset();
  return Copy(file.get(), where.string(), sink);
}

}  // namespace iket::exporter
