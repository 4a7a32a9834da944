#include "cli/run_iket/stats.h"

#include <filesystem>

#include "cli/run_iket/run_iket.h"
#include "export/json_writer.h"
#include "export/output_file.h"

namespace iket::cli::run_iket {
namespace {

struct Name {
  const char* key;
  const char* label;
};
// In the order of Stats::Part.
constexpr std::array<Name, Stats::kParts> kNames = {{
    {"trackerWorkload", "tracker workload"},
    {"configGeneration", "config generation"},
    {"profilingWorkload", "profiling workload"},
    {"postprocess", "postprocess"},
    {"rawCaptureDecoderInit", "raw-capture decoder init"},
    {"perfettoTraceExport", "C++ Perfetto trace export"},
    {"decodedJsonExport", "decoded JSON export"},
    {"pftraceWrite", "Perfetto trace write"},
    {"optionalOutput", "optional output"},
    {"cleanup", "cleanup"},
}};

bool IsStep(int part) { return part > Stats::kPostprocess && part < Stats::kCleanup; }

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Stats::Timer::~Timer() {
  Row& row = stats_.rows_[part_];
  row.time = row.time.value_or(std::chrono::nanoseconds(0)) + (Clock::now() - begin_);
  row.failed |= failed_;
}

const char* Stats::Status(Part part) const {
  const Row& row = rows_[part];
  if (row.failed) return "failed";
  if (row.time) return "completed";
  // A step for which postprocess had no work.
  const bool over = IsStep(part) && (rows_[kPostprocess].time || rows_[kPostprocess].skipped);
  return row.skipped || over ? "skipped" : "notRun";
}

void Stats::Print() const {
  Say("run-iket stats summary:");
  for (int i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const Row& row = rows_[part];
    std::string text = row.time ? fmt::format("{:.3f} s", Seconds(*row.time)) : Status(part);
    if (row.failed) text += " (failed)";
    const std::string label = std::string(kNames[part].label) + ":";
    Say(IsStep(i) ? fmt::format("    {:<28} {}", label, text)
                  : fmt::format("  {:<22} {}", label, text));
  }
  Say(fmt::format("  {:<22} {:.3f} s", "total:", Seconds(Clock::now() - begin_)));
}

std::string Stats::Json() const {
  exporter::JsonWriter json;
  {
    const auto members = [&](Part part) {
      const auto& time = rows_[part].time;
      json.Member("status", Status(part));
      json.Member("durationNs", time ? std::optional<int64_t>(time->count()) : std::nullopt);
    };
    auto object = json.Object();
    {
      auto meta = json.Object("meta");
      json.Member("version", 1);
    }
    json.Member("clock", "monotonic");
    json.Member("unit", "nanoseconds");
    {
      auto phases = json.Object("phases");
      for (int i = 0; i < kParts; ++i) {
        if (IsStep(i)) continue;
        auto phase = json.Object(kNames[i].key);
        members(static_cast<Part>(i));
        if (i != kPostprocess) continue;
        auto steps = json.Object("subphases");
        for (int step = kPostprocess + 1; IsStep(step); ++step) {
          auto entry = json.Object(kNames[step].key);
          members(static_cast<Part>(step));
        }
      }
    }
    json.Member("totalNs", std::chrono::nanoseconds(Clock::now() - begin_).count());
  }
  return json.Take() + "\n";
}

Result<void> Stats::Write(const std::string& folder) const {
  auto file = exporter::OutputFile::Create(std::filesystem::path(folder) / kStatsFile);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->Write(Json()); !written) return written;
  return file->Commit();
}

}  // namespace iket::cli::run_iket
