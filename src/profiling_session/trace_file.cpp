#include "profiling_session/trace_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "inject/beside.h"
#include "inject/guest.h"
#include "profiling_session/exporter.h"

namespace iket::profiling_session {
namespace {

// As NVIDIA's library writes it, but for its indentation.
constexpr std::string_view kEmpty =
    R"({"graphLaunches":{},"launches":[],"locationTable":[],"meta":{"version":1},"stringTable":[]})"
    "\n";

Result<void> WriteEmpty(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return Fail(ErrorKind::kSystem, "{}: {}", path, std::strerror(errno));
  const bool written = std::fwrite(kEmpty.data(), 1, kEmpty.size(), file) == kEmpty.size();
  if (std::fclose(file) == 0 && written) return {};
  return Fail(ErrorKind::kSystem, "{}: {}", path, std::strerror(errno));
}

Result<void> WriteCapture(inject::Guest& guest, const session::Times& times,
                          const std::string& path) {
  const auto written =
      guest.WriteSnapshot(path, [](capture::Writer&) { return Result<void>(); }, &times);
  if (!written) return tl::unexpected(written.error());
  if (!written->incomplete.empty()) return Fail(ErrorKind::kSystem, "{}", written->incomplete);
  if (guest.chunks_lost() == 0) return {};
  return Fail(ErrorKind::kSystem,
              "some of what was recorded is lost, its file could not grow (a full disk?)");
}

}  // namespace

Result<void> WriteTrace(const session::Times& times, const std::string& path) {
  if (path.empty()) return Fail(ErrorKind::kUsage, "a trace without a path is not written");
  inject::Beside beside(path);
  if (auto ready = beside.Ready(); !ready) return ready;
  inject::Guest* const guest = inject::Guest::Existing();
  const bool wants_capture = path.ends_with(".iketcap");
  std::string file = beside.File(wants_capture ? "iketcap" : "trace.json");
  Result<void> made;
  if (wants_capture && guest == nullptr) {
    return Fail(ErrorKind::kUsage, "{}: nothing to write: no code with marks has been loaded",
                path);
  }
  if (wants_capture) {
    made = WriteCapture(*guest, times, file);
  } else if (guest == nullptr || times.times.empty()) {
    made = WriteEmpty(file);
  } else {
    const std::string capture = beside.File("iketcap");
    made = WriteCapture(*guest, times, capture);
    if (made) {
      const auto exported = ExportJson(capture, file, beside.File("errors"));
      if (!exported) {
        made = tl::unexpected(exported.error());
      } else if (!*exported) {
        made = WriteEmpty(file);
      }
    }
  }
  if (!made) return Fail(made.error().kind, "{}: not written: {}", path, made.error().message);
  return beside.Place(file);
}

}  // namespace iket::profiling_session
