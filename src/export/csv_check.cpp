#include "export/csv_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.h"
#include "export/csv.h"

namespace iket::exporter {
namespace {

// A number that is all of the cell.
std::optional<int64_t> Integer(std::string_view cell) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || rest != cell.data() + cell.size()) return std::nullopt;
  return value;
}

bool IsNumber(std::string_view cell) {
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return rest == cell.data() + cell.size() && error != std::errc::invalid_argument;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = text.front() == '\0' ? 0 : Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

constexpr std::string_view kIntegers[] = {
    "process",     "launch",       "grid_id",    "cluster_x",       "cluster_y",
    "cluster_z",   "cta_x",        "cta_y",      "cta_z",           "warp",
    "sm",          "slot",         "depth",      "start_ns",        "end_ns",
    "duration_ns", "start_cycles", "end_cycles", "duration_cycles", "event"};

enum class What { kNote, kLaunch, kWarp, kRange, kMark };
struct Kind {
  std::string_view name;
  What what;
};
constexpr Kind kKinds[] = {
    {"fact", What::kNote},     {"health", What::kNote},   {"host_mark", What::kNote},
    {"launch", What::kLaunch}, {"warp", What::kWarp},     {"range", What::kRange},
    {"mark", What::kMark},     {"flow_out", What::kMark}, {"flow_in", What::kMark},
    {"sync", What::kMark},     {"unknown", What::kMark},  {"unmatched_end", What::kMark}};

constexpr std::string_view kOfLaunch[] = {"grid_id", "start_ns", "end_ns", "duration_ns"};
constexpr std::string_view kOfWarp[] = {
    "grid_id",     "sm",           "start_ns",   "end_ns",
    "duration_ns", "start_cycles", "end_cycles", "duration_cycles"};
constexpr std::string_view kOfRange[] = {
    "grid_id",      "sm",         "start_ns",        "end_ns", "duration_ns",
    "start_cycles", "end_cycles", "duration_cycles", "event",  "depth"};
constexpr std::string_view kOfMark[] = {"grid_id", "sm", "start_ns", "start_cycles", "event"};

std::span<const std::string_view> MustHave(What what) {
  switch (what) {
    case What::kLaunch:
      return kOfLaunch;
    case What::kWarp:
      return kOfWarp;
    case What::kRange:
      return kOfRange;
    case What::kMark:
      return kOfMark;
    case What::kNote:
      break;
  }
  return {};
}

}  // namespace

void CsvCheck::Add(std::string_view kind, std::string text) {
  faults_.Add(row_offset_, kind, fmt::format("row {}: {}", rows_ + 1, text));
}

std::string_view CsvCheck::Cell(std::string_view column) const {
  return row_[static_cast<size_t>(std::ranges::find(kCsvColumns, column) - kCsvColumns.begin())];
}

void CsvCheck::Feed(std::span<const std::byte> untrusted) {
  for (const std::byte byte : untrusted) {
    if (state_ == State::kStopped) return;
    Take(static_cast<char>(byte));
    ++offset_;
  }
}

void CsvCheck::Take(char c) {
  if (state_ == State::kQuoted) {
    if (c == '"') {
      state_ = State::kQuoteInQuoted;
    } else {
      cell_ += c;
    }
  } else if (c == ',') {
    EndCell();
  } else if (c == '\n') {
    EndRow();
  } else if (c == '"') {
    if (state_ == State::kPlain) Add("quoting", "a quote inside of a cell without quotes");
    if (state_ == State::kQuoteInQuoted) cell_ += '"';
    if (state_ != State::kPlain) state_ = State::kQuoted;
  } else {
    if (state_ == State::kQuoteInQuoted) Add("quoting", "text behind a quoted cell");
    if (c == '\r') Add("quoting", "a carriage return outside of quotes");
    state_ = State::kPlain;
    cell_ += c;
  }
  if (cell_.size() > kMostCellBytes || row_.size() > 2 * kCsvColumns.size()) {
    faults_.AddLast(row_offset_, "row",
                    fmt::format("row {}: too long; what follows was not read", rows_ + 1));
    state_ = State::kStopped;
  }
}

void CsvCheck::EndCell() {
  row_.push_back(std::exchange(cell_, {}));
  state_ = State::kStart;
}

void CsvCheck::EndRow() {
  EndCell();
  CheckRow();
  row_.clear();
  ++rows_;
  row_offset_ = offset_ + 1;
}

void CsvCheck::Finish() {
  if (state_ == State::kStopped) return;
  const bool cut = state_ != State::kStart || !row_.empty();
  if (cut) faults_.Add(offset_, "cut", fmt::format("the file ends inside of row {}", rows_ + 1));
  if (rows_ == 0 && !cut) faults_.Add(0, "empty", "no row is in it");
}

void CsvCheck::CheckRow() {
  if (row_.size() != kCsvColumns.size()) {
    return Add("row",
               fmt::format("{} cells; there are {} columns", row_.size(), kCsvColumns.size()));
  }
  if (rows_ == 0) {
    if (!std::ranges::equal(row_, kCsvColumns)) Add("row", "the columns are not those of iket");
    return;
  }
  if (!std::ranges::all_of(row_, IsUtf8)) Add("text", "bytes that are not UTF-8, or zeros");
  const auto kind = std::ranges::find(kKinds, Cell("kind"), &Kind::name);
  if (kind == std::end(kKinds)) return Add("kind", "a kind that iket does not write");
  for (const std::string_view column : MustHave(kind->what)) {
    if (Cell(column).empty()) Add("cell", fmt::format("{} is missing", column));
  }
  if (kind->name == "fact" && Cell("name") == "software device") simulated_ = true;
  launches_ += kind->what == What::kLaunch ? 1 : 0;
  warps_ += kind->what == What::kWarp ? 1 : 0;
  ranges_ += kind->what == What::kRange ? 1 : 0;
  marks_ += kind->what == What::kMark ? 1 : 0;
  CheckNumbers();
}

void CsvCheck::CheckNumbers() {
  for (const std::string_view column : kIntegers) {
    // Cycles may have all 64 bits; only their differences are looked at below.
    const std::string_view cell = Cell(column);
    if (!cell.empty() && !Integer(cell) && !(column.ends_with("cycles") && IsNumber(cell))) {
      Add("cell", fmt::format("{} is no whole number", column));
    }
  }
  const std::string_view kind = Cell("kind");
  const bool note = kind == "fact" || kind == "health" || kind == "host_mark";
  for (const std::string_view column : {"payload", "end_payload"}) {
    if (!note && !Cell(column).empty() && !IsNumber(Cell(column))) {
      Add("cell", fmt::format("{} is no number", column));
    }
  }
  for (const std::string_view column : {"values", "end_values"}) {
    const std::string_view cell = Cell(column);
    if (cell.empty()) continue;
    const auto object = nlohmann::json::parse(cell, nullptr, false);
    if (!object.is_object()) Add("cell", fmt::format("{} is no JSON object", column));
  }
  for (const std::string_view unit : {"ns", "cycles"}) {
    const auto of = [&](std::string_view what) {
      return Integer(Cell(fmt::format("{}_{}", what, unit)));
    };
    const auto start = of("start"), end = of("end"), duration = of("duration");
    if (!start || !end || !duration) continue;
    const uint64_t difference = static_cast<uint64_t>(*end) - static_cast<uint64_t>(*start);
    if (static_cast<uint64_t>(*duration) != difference) {
      Add("time", fmt::format("duration_{} is not end less start", unit));
    } else if (*duration < 0) {
      Add("time", fmt::format("it ends before it begins, in {}", unit));
    }
  }
}

Counts CsvCheck::counts() const {
  return {{"launch", launches_}, {"warp", warps_}, {"range", ranges_}, {"marker", marks_}};
}

}  // namespace iket::exporter
