#include "cli/load.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/column.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "foreign/read_run.h"
#include "trace/decode.h"

namespace iket::cli {

namespace {

// True if the decoded capture is larger than the memory that is left.
Result<bool> IsTooLarge(const capture::Reader& reader) {
  const auto memory = MemoryForDecoding();
  if (!memory) return tl::unexpected(memory.error());
  return DecodingBytes(reader) > *memory;
}

std::string FolderForFiles() {
  const char* const said = std::getenv("TMPDIR");
  if (said != nullptr && *said != 0) return said;
  // What /tmp is may be memory.
  return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

// From here on what is large lies in files: the decoded capture does not fit into memory.
Result<void> MakeRoom(const std::string& path, uint64_t bytes, uint64_t memory) {
  // Less than this only makes it slow.
  constexpr uint64_t kLeast = uint64_t{64} << 20;
  // Of the files that a writer may want besides, none is there while the records still are.
  const uint64_t file_bytes = bytes / 4 * 3;
  const std::string folder = FolderForFiles();
  struct statvfs room{};
  const uint64_t free_bytes =
      statvfs(folder.c_str(), &room) == 0 ? uint64_t{room.f_bavail} * room.f_frsize : 0;
  if (free_bytes < file_bytes) {
    return Fail(
        ErrorKind::kSystem,
        "{}: larger, decoded, than memory ({} of {}), and {} has no room for it ({} of {}): "
        "set TMPDIR to a folder on a larger disk, or IKET_DECODE_BYTES to what memory it "
        "may take",
        path, Bytes(bytes), Bytes(memory), folder, Bytes(free_bytes), Bytes(file_bytes));
  }
  // The heap and the caches of the file system need some, too.
  if (auto kept = KeepColumnsInFiles(folder, std::max(memory / 4 * 3, kLeast)); !kept) {
    return FailIn(path, kept.error());
  }
  PrintWarning(
      fmt::format("{}: larger, decoded, than memory ({} of {}): it lies in files in {} meanwhile",
                  path, Bytes(bytes), Bytes(memory), folder));
  return {};
}

Result<Loaded> Decoded(const std::string& path, capture::Reader reader) {
  Progress progress("reading " + path, "records", reader.ring_raw_bytes() / ring::kRecordBytes);
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
  const auto too_large = IsTooLarge(*reader);
  if (!too_large) return tl::unexpected(too_large.error());
  if (*too_large) {
    if (auto room = MakeRoom(path, DecodingBytes(*reader), *MemoryForDecoding()); !room) {
      return tl::unexpected(room.error());
    }
  }
  return Decoded(path, std::move(*reader));
}

Result<Loaded> LoadOrCount(const std::string& path) {
  if (IsOfRunIket(path)) return LoadRun(path);
  auto reader = capture::Reader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  const auto too_large = IsTooLarge(*reader);
  if (!too_large) return tl::unexpected(too_large.error());
  if (!*too_large) return Decoded(path, std::move(*reader));
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
