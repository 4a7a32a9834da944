#include "cli/run_iket/folder.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/output_folder.h"
#include "cli/run_iket/run_iket.h"
#include "cli/terminal.h"

namespace iket::cli::run_iket {
namespace {

namespace fs = std::filesystem;

// `inner` is `outer`, or lies in it. Both are canonical.
bool IsIn(const fs::path& inner, const fs::path& outer) {
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

bool IsConfirmed(const fs::path& output) {
  if (isatty(STDIN_FILENO) != 1) {
    Say(fmt::format(
        "Output directory {} already exists, and nobody can be asked: standard input is "
        "no terminal. --clobber removes it; --output-dir names another",
        output.string()));
    return false;
  }
  Print(fmt::format("[run-iket] Output directory {} already exists. Remove it? [y/N]: ",
                    Printable(output.string())));
  static_cast<void>(FlushOut());
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y") return true;
  Say(fmt::format("Output directory {} already exists, and stays", output.string()));
  return false;
}

}  // namespace

Result<void> CheckMayBeRemoved(const fs::path& output, const fs::path& working) {
  std::error_code why;
  if (fs::is_symlink(fs::symlink_status(output, why))) {
    return Fail(ErrorKind::kSystem,
                "--output-dir {}: is a link; name a folder, as it is removed when it is used again",
                output.string());
  }
  const fs::path real = fs::weakly_canonical(output, why);
  for (const fs::path& used : {fs::current_path(why), fs::weakly_canonical(working, why)}) {
    if (why) return Fail(ErrorKind::kSystem, "{}: {}", output.string(), why.message());
    if (!IsIn(used, real)) continue;
    return Fail(ErrorKind::kSystem,
                "--output-dir {}: {} the working folder {}; name one of its own, as it is removed "
                "when it is used again",
                output.string(), used == real ? "is" : "holds", used.string());
  }
  return {};
}

Result<bool> MakeOutputFolder(const fs::path& output, const fs::path& working, bool clobber) {
  if (auto may = CheckMayBeRemoved(output, working); !may) return tl::unexpected(may.error());
  std::error_code ignored;
  if (fs::exists(output, ignored)) {
    if (!fs::is_directory(output, ignored)) {
      return Fail(ErrorKind::kSystem, "--output-dir {}: is a file", output.string());
    }
    if (!clobber && !IsConfirmed(output)) return false;
    Say(fmt::format("Removing existing output directory: {}", output.string()));
    if (auto removed = RemoveOutputFolder(output); !removed) return tl::unexpected(removed.error());
  }
  if (auto made = PrepareOutputFolder(output, false); !made) return tl::unexpected(made.error());
  return true;
}

}  // namespace iket::cli::run_iket
