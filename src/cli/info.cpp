// iket info: what is in a file, before or after it ran.
#include "cli/info.h"

#include <cstring>
#include <memory>

#include "cli/code_images.h"
#include "cli/command.h"
#include "cli/load.h"

namespace iket::cli {
namespace {

Result<int> Info(const InfoOptions& options) {
  if (!options.compare.empty()) return CompareCode(options);
  const auto file = MappedFile::Open(options.file);
  if (!file) return tl::unexpected(file.error());
  const UntrustedBytes bytes = file->untrusted();
  static constexpr char kCaptureMagic[8] = "iketcap";
  if (bytes.Contains(0, sizeof kCaptureMagic) &&
      std::memcmp(bytes.data(), kCaptureMagic, sizeof kCaptureMagic) == 0) {
    return InfoOnCapture(options);
  }
  if (IsOfRunIket(options.file)) return InfoOnCapture(options);
  return InfoOnCode(options, bytes);
}

}  // namespace

void AddInfo(CLI::App& app, Run& run) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* sub =
      app.add_subcommand("info", "Say what is in a cubin, fatbin, program, library or capture");
  sub->add_option("file", options->file, "The file")->required()->type_name("FILE");
  sub->add_option("--compare", options->compare,
                  "Another build of FILE, say with marks: what differs in each kernel")
      ->type_name("FILE");
  sub->add_flag("--sites", options->sites, "Every site of a mark with its place in the code");
  sub->add_flag("--all", options->all,
                "Also images and kernels without marks, and every mark of the host");
  sub->add_flag("--json", options->json, "Say it as JSON, in full");
  sub->callback([options, &run] { run = [options] { return Info(*options); }; });
}

}  // namespace iket::cli
