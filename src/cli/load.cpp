#include "cli/load.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "foreign/read_run.h"
#include "trace/decode.h"

namespace iket::cli {

namespace {

// True if the capture cannot be decoded in the memory that is left.
bool IsTooLarge(const capture::Reader& reader) {
  return DecodingBytes(reader) > MemoryForDecoding();
}

Result<Loaded> Decoded(const std::string& path, capture::Reader reader) {
  Progress progress("reading " + path);
  auto model = trace::Decode(reader, progress.Callback());
  if (!model) return FailIn(path, model.error());
  return Loaded{path, std::move(reader), std::move(*model)};
}

Result<Loaded> LoadRun(const std::string& path) {
  Progress progress("reading " + path);
  auto run = foreign::ReadRun(path, progress.Callback());
  if (!run) return tl::unexpected(run.error());
  return Loaded{.path = path,
                .reader = std::nullopt,
                .model = std::move(run->model),
                .of_run_iket = std::move(run->facts)};
}

}  // namespace

bool IsOfRunIket(const std::string& path) {
  const auto file = MappedFile::Open(path, "capture");  // whoever reads it says why it cannot
  return file && foreign::LooksLikeRawRun(file->bytes());
}

Result<Loaded> Load(const std::string& path) {
  if (IsOfRunIket(path)) return LoadRun(path);
  auto reader = capture::Reader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  if (IsTooLarge(*reader)) {
    return Fail(ErrorKind::kSystem,
                "{}: too large to be decoded: it would take about {} of memory, and {} are left "
                "here; `iket info` says what it is of (IKET_DECODE_BYTES sets another limit)",
                path, Bytes(DecodingBytes(*reader)), Bytes(MemoryForDecoding()));
  }
  return Decoded(path, std::move(*reader));
}

Result<Loaded> LoadOrCount(const std::string& path) {
  if (IsOfRunIket(path)) return LoadRun(path);
  auto reader = capture::Reader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  if (!IsTooLarge(*reader)) return Decoded(path, std::move(*reader));
  Progress progress("counting " + path);
  auto model = trace::Decoder(reader->capture()).Finish();
  if (!model) return FailIn(path, model.error());
  const Tally tally = TallyOf(*reader, progress.Callback());
  return Loaded{path, std::move(*reader), std::move(*model), tally};
}

std::vector<std::string> DeviceNames(const Loaded& loaded) {
  std::vector<std::string> names;
  for (const auto& device : loaded.facts().devices) {
    std::string name = Printable(device.name);
    if (device.simulated) name += ": times are a model's, nothing here is a measurement";
    names.push_back(std::move(name));
  }
  return names;
}

bool Simulated(const Loaded& loaded) {
  return std::ranges::any_of(loaded.facts().devices, &capture::Device::simulated);
}

std::string FilterText(const capture::KernelFilter& filter) {
  std::vector<std::string> parts;
  if (filter.by_cluster) {
    parts.push_back(fmt::format("of cluster {}", fmt::join(filter.cluster, ",")));
  }
  if (filter.sample != 1)
    parts.push_back(fmt::format("whose number is a multiple of {}", filter.sample));
  if (filter.by_sm) parts.emplace_back("on some SMs");
  return fmt::format("{}", fmt::join(parts, "; "));
}

int ReadCode(const Loaded& loaded) {
  const capture::Damage& damage = loaded.facts().damage;
  if (damage.chunks_unknown != 0) {
    PrintWarning(
        fmt::format("{}: made by a newer iket: kinds of data that this one does not know "
                    "were left out",
                    loaded.path));
  }
  if (damage.any()) {
    PrintError(fmt::format("{}: damaged: {}; {}", loaded.path, damage.Summary(),
                           loaded.model.warps.size() != 0 ? "what is whole in it was read"
                                                          : "no warp is whole in it"));
    return ExitCode(ErrorKind::kBadInput);
  }
  if (loaded.model.warps.size() == 0 && !loaded.tally) {
    PrintError(loaded.reader
                   ? fmt::format("{}: nothing was recorded; `iket info {}` says which kernels were "
                                 "seen",
                                 loaded.path, loaded.path)
                   : fmt::format("{}: run-iket recorded no warp of any launch", loaded.path));
    return ExitCode(ErrorKind::kNothing);
  }
  return kExitDone;
}

}  // namespace iket::cli
