#include "cli/load.h"

#include "cli/command.h"
#include "cli/terminal.h"
#include "trace/decode.h"

namespace iket::cli {

Result<Loaded> Load(const std::string& path) {
  auto reader = capture::Reader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  auto model = trace::Decode(*reader);
  if (!model) return FailIn(path, model.error());
  return Loaded{path, std::move(*reader), std::move(*model)};
}

int ReadCode(const Loaded& loaded) {
  const capture::Damage& damage = loaded.facts().damage;
  if (damage.any()) {
    PrintError(fmt::format("{}: damaged: {}; what is whole in it was read", loaded.path,
                           damage.Summary()));
    return ExitCode(ErrorKind::kBadInput);
  }
  if (loaded.model.warps.size() == 0) {
    PrintError(fmt::format("{}: nothing was recorded; `iket info {}` says which kernels were seen",
                           loaded.path, loaded.path));
    return ExitCode(ErrorKind::kNothing);
  }
  return kExitDone;
}

}  // namespace iket::cli
