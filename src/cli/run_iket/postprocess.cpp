// run-iket postprocess: traces of a run that has been, ours or NVIDIA's.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/run_iket/run_iket.h"
#include "cli/run_iket/traces.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace iket::cli::run_iket {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRawCapture = "iket.data.json";  // of NVIDIA's run-iket

struct Capture {
  fs::path path;
  std::string stem;  // of the files that are made of it
};

struct Found {
  std::vector<Capture> captures;
  size_t ours = 0, theirs = 0;
};

// iket_pid_0x12 of a folder pid_0x12.
std::string StemOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with("pid_") ? "iket_" + name : "iket";
}

Result<std::vector<fs::path>> Listed(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code why;
  for (fs::directory_iterator entry(folder, why), end; !why && entry != end; entry.increment(why)) {
    paths.push_back(entry->path());
  }
  if (why) return Fail(ErrorKind::kSystem, "{}: {}", folder.string(), why.message());
  std::ranges::sort(paths);
  return paths;
}

// Captures of ours in the folder, and of run-iket's (with --keep) in iket/pid_0x<pid>, or where
// that or one of its pid folders was copied to.
Result<Found> FindCaptures(const fs::path& run) {
  Found found;
  std::error_code ignored;
  const auto take = [&](const fs::path& folder) {
    if (!fs::exists(folder / kRawCapture, ignored)) return false;
    found.captures.push_back({folder / kRawCapture, StemOf(folder)});
    ++found.theirs;
    return true;
  };
  take(run);
  for (const fs::path& folder : {run, run / "iket"}) {
    if (!fs::is_directory(folder, ignored)) continue;
    const auto paths = Listed(folder);
    if (!paths) return tl::unexpected(paths.error());
    for (const fs::path& path : *paths) {
      if (path.extension() == ".iketcap" && folder == run) {
        found.captures.push_back({path, path.stem().string()});
        ++found.ours;
      } else if (path.filename().string().starts_with("pid") && fs::is_directory(path, ignored) &&
                 !take(path)) {
        Say(fmt::format("Warning: no raw capture found in {}, skipping", path.string()));
      }
    }
  }
  return found;
}

// True if files were made. Problems are said.
bool Process(const Capture& capture, const fs::path& output, Formats formats, int& code) {
  const std::string& stem = capture.stem;
  Say(fmt::format("Post-processing results for pid {}...",
                  stem.starts_with("iket_pid_") ? stem.substr(9) : stem));
  const auto loaded = Load(capture.path);
  if (!loaded) {
    PrintError(loaded.error().message);
    code = kFailed;
    return false;
  }
  const int read = ReadCode(*loaded);
  // What was said of one that is damaged holds for what is made of the rest.
  if (read != kExitDone && read != ExitCode(ErrorKind::kNothing)) code = kFailed;
  if (loaded->model.warps.size() == 0) return false;
  Stats untold;
  const auto done = WriteTraces(loaded->model, output / stem, formats, untold,
                                [](const Exported& file) { Say("  -> " + file.path); });
  if (done) return true;
  PrintError(done.error().message);
  code = kFailed;
  return false;
}

}  // namespace

Result<int> Postprocess(const PostprocessOptions& options) {
  std::error_code why;
  const fs::path run = fs::weakly_canonical(options.run_dir, why);
  if (why || !fs::is_directory(run, why)) {
    return Fail(ErrorKind::kSystem, "run directory does not exist: {}", run.string());
  }
  const fs::path output = options.output_dir.empty() ? run : fs::absolute(options.output_dir);
  fs::create_directories(output, why);
  if (why) return Fail(ErrorKind::kSystem, "{}: {}", output.string(), why.message());
  const auto found = FindCaptures(run);
  if (!found) return tl::unexpected(found.error());
  if (found->captures.empty()) {
    return Fail(
        ErrorKind::kSystem,
        "{}: no run is here: neither captures of iket (iket_pid_0x*.iketcap) nor of run-iket "
        "(iket/pid_0x*/iket.data.json, which it leaves with --keep)",
        run.string());
  }
  Say(fmt::format("Found in {}: {} of iket, {} of run-iket", run.string(),
                  Counted(found->ours, "capture"), Counted(found->theirs, "capture")));
  int code = kExitDone;
  size_t processed = 0;
  for (const Capture& capture : found->captures) {
    processed += Process(capture, output, FormatsOf(options.format), code) ? 1 : 0;
  }
  if (processed == 0) return kFailed;
  Say(fmt::format("Post-processing complete. {} pid(s) processed.", processed));
  return code;
}

}  // namespace iket::cli::run_iket
