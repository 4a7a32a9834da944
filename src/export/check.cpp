#include "export/check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "export/chrome_json_check.h"
#include "export/csv.h"
#include "export/csv_check.h"
#include "export/page_check.h"
#include "export/pftrace_check.h"
#include "export/sqlite_check.h"
#include "export/trace_json_check.h"
#include "export/unpack.h"

namespace iket::exporter {
namespace {

using Block = std::optional<std::span<const std::byte>>;

constexpr auto kPacket = std::byte{0x0a};  // tag of the first packet of a Perfetto trace

bool IsBlank(std::byte byte) {
  return byte == std::byte{' '} || byte == std::byte{'\t'} || byte == std::byte{'\r'} ||
         byte == std::byte{'\n'};
}

// JSON begins with its outermost object. A line feed before it is also the tag of a packet, and the
// brace then its length: what follows decides.
bool LooksLikeJson(std::span<const std::byte> bytes) {
  const auto brace = std::ranges::find_if_not(bytes, IsBlank);
  if (brace == bytes.end() || *brace != std::byte{'{'}) return false;
  const auto then = std::find_if_not(brace + 1, bytes.end(), IsBlank);
  return bytes[0] != kPacket ||
         (then != bytes.end() && (*then == std::byte{'"'} || *then == std::byte{'}'}));
}

// A table begins with the names of its first columns.
bool LooksLikeCsv(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with(fmt::format("{},{},{}", kCsvColumns[0], kCsvColumns[1], kCsvColumns[2]));
}

// What a file says to be that cannot be looked into.
std::string_view KindOfName(std::string_view name) {
  if (name.ends_with(".chrome.json") || name.ends_with(".chrome.json.gz")) return "chrome.json";
  if (name.ends_with(".csv") || name.ends_with(".csv.gz")) return "csv";
  if (name.ends_with(".sqlite")) return "sqlite";
  if (name.ends_with(".html")) return "html";
  if (name.ends_with(".json") || name.ends_with(".json.gz")) return "trace.json";
  if (name.ends_with(".pftrace") || name.ends_with(".pftrace.gz")) return "pftrace";
  return "";
}

}  // namespace

void Faults::Add(uint64_t offset, std::string_view kind, std::string text) {
  if (closed_) return;
  if (++count_ <= kMostFaults) first_.push_back({offset, std::string(kind), std::move(text)});
}

void Faults::AddLast(uint64_t offset, std::string_view kind, std::string text) {
  Add(offset, kind, std::move(text));
  closed_ = true;
}

bool LooksLikeExport(std::span<const std::byte> untrusted) {
  return IsGzip(untrusted) || LooksLikeJson(untrusted) || LooksLikeSqlite(untrusted) ||
         LooksLikePage(untrusted) || LooksLikeCsv(untrusted) ||
         (!untrusted.empty() && untrusted[0] == kPacket);
}

Result<CheckedExport> CheckExport(std::span<const std::byte> untrusted, const std::string& name,
                                  const Progress& progress) {
  Unpacker unpacker(untrusted);
  CheckedExport checked;
  checked.compressed = IsGzip(untrusted);
  const auto next = [&]() -> Block {
    if (progress) progress(unpacker.file_offset(), untrusted.size());
    Block block = unpacker.Next();
    if (!block && !unpacker.damage().empty()) {
      checked.faults.AddLast(unpacker.damage_offset(), "gzip", unpacker.damage());
    }
    return block;
  };

  Block block = next();
  while (block && block->empty()) block = next();
  if (!block) {
    checked.kind = KindOfName(name);
    checked.faults.Add(0, "empty", "nothing is in it");  // unless damage was the last fault
    return checked;
  }
  if (!checked.compressed && LooksLikeSqlite(untrusted)) {
    checked.kind = "sqlite";
    auto contents = CheckSqlite(untrusted, checked.faults);
    checked.counts = std::move(contents.counts);
    checked.simulated = contents.simulated;
    return checked;
  }
  if (!checked.compressed && LooksLikePage(untrusted)) {
    checked.kind = "html";
    auto contents = CheckPage(untrusted, checked.faults, progress);
    checked.counts = std::move(contents.counts);
    checked.simulated = contents.simulated;
    return checked;
  }
  if (!checked.compressed && KindOfName(name) == "html") {
    checked.kind = "html";
    checked.faults.AddLast(0, "page",
                           "it does not begin as a page of iket does, with its "
                           "Content-Security-Policy");
    return checked;
  }
  const bool json = LooksLikeJson(*block);
  // A damaged head is said of one that is called so.
  const bool csv = LooksLikeCsv(*block) || (!json && KindOfName(name) == "csv" &&
                                            (checked.compressed || !name.ends_with(".gz")));
  if (!json && !csv && (*block)[0] != kPacket) {
    if (checked.compressed || !name.ends_with(".gz")) {
      return Fail(ErrorKind::kBadInput,
                  "{}: neither a Perfetto trace nor JSON, a table, a database or a page of iket",
                  name);
    }
    checked.kind = KindOfName(name);
    checked.compressed = true;
    checked.faults.AddLast(0, "gzip", "it does not begin as gzip does");
    return checked;
  }
  const auto from_first = [&]() -> Block {
    return block ? std::exchange(block, std::nullopt) : next();
  };
  if (csv) {
    checked.kind = "csv";
    CsvCheck check(checked.faults);
    for (; block; block = next()) check.Feed(*block);
    check.Finish();
    checked.counts = check.counts();
    checked.simulated = check.simulated();
  } else if (json && LooksLikeChromeJson(*block)) {
    checked.kind = "chrome.json";
    auto contents = CheckChromeJson(from_first, checked.faults);
    checked.counts = std::move(contents.counts);
    checked.simulated = contents.simulated;
  } else if (json) {
    checked.kind = "trace.json";
    auto contents = CheckTraceJson(from_first, checked.faults);
    checked.counts = std::move(contents.counts);
    checked.simulated = contents.simulated;
  } else {
    checked.kind = "pftrace";
    PftraceCheck check(checked.faults);
    for (; block; block = next()) check.Feed(*block);
    check.Finish();
    checked.counts = check.counts();
    checked.simulated = check.simulated();
  }
  return checked;
}

}  // namespace iket::exporter
