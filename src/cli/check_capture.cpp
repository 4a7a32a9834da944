// iket check, of a capture.
#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "cli/check.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace iket::cli {
namespace {

// What a full ring loses, or a run that was cut short leaves open, is not wrong: the file says so
// truthfully. `iket report` shows it.
constexpr std::array kNoFaultOfTheFile = {
    &trace::Counters::records_lost,        &trace::Counters::lost_is_lower_bound,
    &trace::Counters::warps_begin_missing, &trace::Counters::warps_end_missing,
    &trace::Counters::warps_running,       &trace::Counters::warps_missing,
    &trace::Counters::unmatched_ends,      &trace::Counters::unmatched_ends_lossy,
    &trace::Counters::unclosed_ranges,     &trace::Counters::crossed_closes,
    &trace::Counters::warps_holed,         &trace::Counters::ranges_cut,
    &trace::Counters::orphan_records,      &trace::Counters::rings_short,
    &trace::Counters::tokens_again,        &trace::Counters::depth_overflows,
    &trace::Counters::flows_unmatched,     &trace::Counters::launches_unseen,
    &trace::Counters::launches_unmatched,  &trace::Counters::values_missing,
    &trace::Counters::values_orphan,
};

void CheckDamage(const capture::Damage& damage, std::vector<Fault>& faults) {
  const auto count = [&](uint64_t value, std::string_view kind, std::string_view noun,
                         std::string_view text) {
    if (value == 0) return;
    faults.push_back({std::string(kind), fmt::format("{} {}", Counted(value, noun), text)});
  };
  if (damage.file_header_damaged) faults.push_back({"file_header", "the file's header is damaged"});
  count(damage.chunks_damaged, "chunks_damaged", "chunk", "with a wrong checksum or length");
  count(damage.chunks_malformed, "chunks_malformed", "chunk",
        "with contents that break the format");
  count(damage.chunks_missing, "chunks_missing", "chunk", "missing, by the sequence numbers");
  count(damage.bytes_skipped, "bytes_skipped", "byte", "outside of whole chunks");
  count(damage.strings_lost, "strings_lost", "reference", "to strings that are not in the file");
  count(damage.chunks_unwritten, "chunks_unwritten", "chunk", "that the writer could not write");
  if (damage.cut) faults.push_back({"cut", "the end is missing: cut, or its writer died"});
}

// Every index that one object names must lead to an object.
void CheckReferences(const capture::Capture& facts, std::vector<Fault>& faults) {
  const auto require = [&](bool found, std::string text) {
    if (!found) faults.push_back({"reference", std::move(text)});
  };
  for (const auto& kernel : facts.kernels) {
    require(facts.FindImage(kernel.image) != nullptr,
            fmt::format("kernel {}: image {} is not in the file", kernel.index, kernel.image));
  }
  for (const auto& declaration : facts.declarations) {
    require(facts.FindImage(declaration.image) != nullptr,
            fmt::format("declaration {:#x}: image {} is not in the file", declaration.event,
                        declaration.image));
  }
  for (const auto& context : facts.contexts) {
    require(facts.FindDevice(context.device) != nullptr,
            fmt::format("context {}: device {} is not in the file", context.index, context.device));
  }
  for (const auto& launch : facts.launches) {
    require(facts.FindKernel(launch.kernel) != nullptr,
            fmt::format("launch {}: kernel {} is not in the file", launch.sequence, launch.kernel));
    require(
        launch.context == capture::kNoContext || facts.FindContext(launch.context) != nullptr,
        fmt::format("launch {}: context {} is not in the file", launch.sequence, launch.context));
  }
  for (const auto& note : facts.notes) {
    require(note.kernel < 0 || facts.FindKernel(static_cast<uint32_t>(note.kernel)) != nullptr,
            fmt::format("note: kernel {} is not in the file", note.kernel));
  }
}

void CheckRings(const std::string& path, const capture::Reader& reader,
                std::vector<Fault>& faults) {
  std::set<uint32_t> unknown;
  uint64_t outside = 0;
  uint64_t blocks = 0;
  Progress progress("checking " + path);
  const capture::RingWalk walk = reader.ForEachRingBlock([&](const capture::RingBlock& block) {
    progress.Update(++blocks, reader.ring_block_count());
    const capture::Context* context = reader.capture().FindContext(block.moment.context);
    if (context == nullptr) {
      unknown.insert(block.moment.context);
      return true;
    }
    const uint64_t rings = uint64_t{context->sm_count} * context->slots_per_sm;
    outside += static_cast<uint64_t>(std::count_if(
        block.rows.begin(), block.rows.end(), [&](const auto& row) { return row.ring >= rings; }));
    return true;
  });
  for (uint32_t context : unknown) {
    faults.push_back(
        {"reference", fmt::format("rings of context {}, which is not in the file", context)});
  }
  if (outside != 0) {
    faults.push_back(
        {"ring_number", fmt::format("{} beyond those of its context", Counted(outside, "ring"))});
  }
  if (walk.blocks_malformed != 0) {
    faults.push_back(
        {"ring_blocks_malformed", fmt::format("{} of rings with contents that break the format",
                                              Counted(walk.blocks_malformed, "chunk"))});
  }
}

void CheckModel(const trace::Model& model, std::vector<Fault>& faults) {
  for (const trace::CounterInfo& info : trace::AllCounters()) {
    const uint64_t value = model.counters.*info.member;
    if (!info.fault || value == 0 || info.name == "chunks_damaged" ||  // said by CheckDamage
        std::find(kNoFaultOfTheFile.begin(), kNoFaultOfTheFile.end(), info.member) !=
            kNoFaultOfTheFile.end()) {
      continue;
    }
    faults.push_back({std::string(info.name), fmt::format("{}: {}", info.meaning, Count(value))});
  }
}

}  // namespace

Result<Checked> CheckCapture(const std::string& path) {
  auto loaded = Load(path);
  if (!loaded) return tl::unexpected(loaded.error());
  Checked checked{.file = path,
                  .format = loaded->reader ? "iketcap" : "iket.data.json",
                  .counts = {{"warp", loaded->model.warps.size()},
                             {"record", loaded->model.counters.records_kept}},
                  .simulated = Simulated(*loaded)};
  if (loaded->reader) {
    checked.counts.insert(checked.counts.begin(), {"chunk", loaded->facts().damage.chunks_whole});
  }
  CheckDamage(loaded->facts().damage, checked.faults);
  CheckReferences(loaded->facts(), checked.faults);
  if (loaded->reader) CheckRings(path, *loaded->reader, checked.faults);
  CheckModel(loaded->model, checked.faults);
  return checked;
}

}  // namespace iket::cli
