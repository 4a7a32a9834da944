#include "foreign/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/mapped_file.h"
#include "capture/demangle.h"
#include "foreign/warp_buffer.h"
#include "trace/declarations.h"
#include "trace/facts.h"
#include "trace/pair.h"
#include "trace/strings.h"

namespace iket::foreign {
namespace {

using trace::kNoRow;

constexpr uint32_t kThreadsPerWarp = 32;

std::string FourBytes(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// What the model's declarations are, as a capture of ours would have them.
class Declared {
 public:
  // Two rows a token: its begin and its end.
  struct Ids {
    uint32_t event = 0;  // 0: it is no event of the module
    uint32_t end = 0;    // of a token
  };

  explicit Declared(const RawRun& raw) {
    for (uint32_t module = 0; module < raw.modules.size(); ++module) {
      AddModule(module, raw.modules[module]);
    }
  }

  std::vector<capture::Declaration> declarations;
  std::vector<capture::Attribute> attributes;
  // By module and the metadata's id of the event.
  std::vector<std::vector<Ids>> ids;

 private:
  void AddModule(uint32_t module, const RawContext& raw) {
    std::vector<Ids>& of_event = ids.emplace_back();
    for (const RawEvent& event : raw.events) {
      if (event.id == 0) continue;  // the end of a warp
      if (event.id >= of_event.size()) of_event.resize(event.id + 1);
      if (of_event[event.id].event != 0) continue;  // declared twice
      using Kind = capture::EventKind;
      switch (event.position) {
        case Position::kNotInRange:
        case Position::kRangeInternal:
          of_event[event.id].event = Declare(module, raw, event, Kind::kMark);
          break;
        case Position::kRangeStart:
          of_event[event.id].event = Declare(module, raw, event, Kind::kPush);
          break;
        case Position::kRangeEnd:
          of_event[event.id].event = Declare(module, raw, event, Kind::kPop);
          break;
        case Position::kRangeStartEnd:
          of_event[event.id] = {Declare(module, raw, event, Kind::kTokenBegin),
                                Declare(module, raw, event, Kind::kTokenEnd)};
          break;
      }
    }
  }

  // Ids are those of meanings, so that modules share them.
  uint32_t Declare(uint32_t module, const RawContext& raw, const RawEvent& event,
                   capture::EventKind kind) {
    const auto range = std::ranges::find(raw.ranges, event.range, &RawRange::id);
    const bool has_range = event.range != 0 && range != raw.ranges.end();
    const uint32_t colour = has_range ? range->colour : capture::kAutomaticColour;
    const bool is_pop = kind == capture::EventKind::kPop;  // which has no name
    const std::string name = is_pop ? "" : event.name;
    const auto next = static_cast<uint32_t>(meanings_.size() + 1);
    const uint32_t id =
        meanings_
            .try_emplace(std::tuple(event.id, kind, event.payload, name, event.range, colour), next)
            .first->second;
    declarations.push_back({.image = module,
                            .event = id,
                            .kind = kind,
                            .payload = static_cast<capture::PayloadType>(event.payload),
                            .name = name,
                            .colour = colour});
    attributes.push_back({.image = module,
                          .event = id,
                          .position = 0,
                          .what = capture::AttributeKind::kForeignEvent,
                          .text = FourBytes(event.id)});
    if (event.range != 0) {
      attributes.push_back({.image = module,
                            .event = id,
                            .position = 1,
                            .what = capture::AttributeKind::kForeignRange,
                            .text = FourBytes(event.range)});
    }
    return id;
  }

  using Meaning =
      std::tuple<uint32_t, capture::EventKind, uint8_t, std::string, uint32_t, uint32_t>;
  std::map<Meaning, uint32_t> meanings_;
};

// Rows of Model::declarations and how payloads become the model's, for one module.
class ModuleRows {
 public:
  ModuleRows(const std::vector<Declared::Ids>& ids, const trace::Declarations& declarations,
             uint32_t module)
      : declarations_(declarations) {
    const auto view = declarations.OfImage(module);
    for (const Declared::Ids& id : ids) {
      rows_.push_back(
          {id.event == 0 ? 0 : view.Find(id.event), id.end == 0 ? 0 : view.Find(id.end)});
    }
  }

  struct Rows {
    uint32_t event = 0;  // 0: unknown
    uint32_t end = 0;    // 0: no token
  };
  Rows Of(uint32_t event) const { return event < rows_.size() ? rows_[event] : Rows(); }
  const trace::PayloadRule& Rule(uint32_t row) const { return declarations_.Rule(row); }

 private:
  const trace::Declarations& declarations_;
  std::vector<Rows> rows_;
};

// A launch and where its warps lie.
struct Buffers {
  const RawLaunch* launch = nullptr;
  UntrustedBytes bytes{};
  uint64_t count = 0;  // of whole buffers
  uint32_t warps_per_cta = 0;
  bool one_cluster = false;  // they are of its CTAs alone
  uint64_t first_ns = std::numeric_limits<uint64_t>::max();

  UntrustedBytes Warp(uint64_t index) const {
    return *bytes.Slice(index * launch->warp_bytes, launch->warp_bytes);
  }
};

class Reading {
 public:
  Reading(const RawRun& raw, const FileOf& file_of)
      : raw_(raw), file_of_(file_of), strings_(run_.model.strings) {}

  Result<Run> Go(const Progress& progress) {
    Declared declared(raw_);
    run_.facts.declarations = std::move(declared.declarations);
    run_.facts.attributes = std::move(declared.attributes);
    std::ranges::stable_sort(run_.facts.declarations, {}, [](const capture::Declaration& row) {
      return std::pair(row.image, row.event);
    });
    std::ranges::stable_sort(run_.facts.attributes, {}, [](const capture::Attribute& row) {
      return std::tuple(row.image, row.event, row.position);
    });
    FindBuffers();
    StateDevices();
    StateKernels();
    trace::StateFacts(run_.facts, strings_, run_.model);
    const trace::Declarations declarations(run_.facts.declarations, run_.facts.attributes, strings_,
                                           run_.model.declarations);
    for (uint32_t module = 0; module < raw_.modules.size(); ++module) {
      modules_.emplace_back(declared.ids[module], declarations, module);
    }
    MakeClocks();
    uint64_t done = 0;
    for (const Buffers& buffers : buffers_) {
      ReadLaunch(buffers);
      if (run_.model.events.cycles.size() >= kNoRow) {
        return Fail(ErrorKind::kBadInput, "it holds {} events, more than {}",
                    run_.model.events.cycles.size(), kNoRow);
      }
      if (progress) progress(++done, buffers_.size());
    }
    run_.model.counters.records_written =
        run_.model.counters.records_kept + run_.model.counters.records_lost;
    trace::PairRanges(run_.model);
    return std::move(run_);
  }

 private:
  // Launches with warps, by the first of them.
  void FindBuffers() {
    std::map<std::string, uint64_t> used;  // bytes of each file
    for (const RawLaunch& launch : raw_.launches) {
      if (!launch.recorded) continue;
      Buffers buffers{.launch = &launch};
      const UntrustedBytes file(file_of_(launch.file));
      // No two have the same buffers: a small file must not ask for much memory.
      uint64_t& in_file = used[launch.file];
      if (launch.bytes > file.size() - in_file && in_file != 0) {
        ++run_.facts.damage.chunks_malformed;
        continue;
      }
      in_file += std::min<uint64_t>(launch.bytes, file.size() - in_file);
      const uint64_t begin = std::min<uint64_t>(launch.offset, file.size());
      const uint64_t bytes = std::min<uint64_t>(launch.bytes, file.size() - begin);
      run_.facts.damage.cut |= bytes != launch.bytes;
      buffers.bytes = *file.Slice(begin, bytes);
      PlaceWarps(buffers);
      for (uint64_t i = 0; i < buffers.count; ++i) {
        const auto header = ReadWarpHeader(buffers.Warp(i));
        if (!header || !header->IsValid()) continue;
        buffers.first_ns = std::min(buffers.first_ns, header->begin_ns);
      }
      if (buffers.first_ns == std::numeric_limits<uint64_t>::max()) {
        ++run_.model.counters.launches_unseen;
        continue;
      }
      buffers_.push_back(buffers);
    }
    std::ranges::stable_sort(buffers_, {}, &Buffers::first_ns);
    if (!buffers_.empty()) run_.model.origin_ns = buffers_.front().first_ns;
  }

  static uint64_t WarpsPerCta(const RawLaunch& launch) {
    return trace::WarpsExpected({1, 1, 1}, launch.block);
  }
  static std::array<uint32_t, 3> ClusterSize(const RawLaunch& launch) {
    std::array<uint32_t, 3> size = launch.cluster;
    for (uint32_t& ctas : size) ctas = std::max(ctas, 1u);
    return size;
  }

  // How many warp buffers there are, and of which CTAs.
  void PlaceWarps(Buffers& buffers) {
    const RawLaunch& launch = *buffers.launch;
    const uint64_t per_cta = WarpsPerCta(launch);
    if (launch.warp_bytes == 0 || per_cta == 0 || per_cta > 64) {
      run_.facts.damage.bytes_skipped += buffers.bytes.size();
      return;
    }
    buffers.warps_per_cta = static_cast<uint32_t>(per_cta);
    buffers.count = buffers.bytes.size() / launch.warp_bytes;
    const uint64_t all = trace::WarpsExpected(launch.grid, launch.block);
    if (launch.only_cluster) {
      const uint64_t of_cluster = trace::WarpsExpected(ClusterSize(launch), launch.block);
      buffers.one_cluster = launch.bytes / launch.warp_bytes == of_cluster && of_cluster != all;
    }
    buffers.count = std::min(buffers.count, all);
    run_.facts.damage.bytes_skipped += buffers.bytes.size() - buffers.count * launch.warp_bytes;
  }

  // Contexts of the run are GPUs here: nothing says which of them share one.
  void StateDevices() {
    std::map<uint32_t, uint32_t> architectures;  // by context
    for (const Buffers& buffers : buffers_) {
      architectures.try_emplace(buffers.launch->context,
                                raw_.modules[buffers.launch->module].architecture);
    }
    for (const auto& [context, architecture] : architectures) {
      const auto index = static_cast<uint32_t>(device_of_.size());
      device_of_[context] = index;
      capture::Device device{.index = index,
                             .name = "a GPU that run-iket does not name",
                             .compute_major = static_cast<uint16_t>(architecture / 10),
                             .compute_minor = static_cast<uint16_t>(architecture % 10)};
      const auto topology = raw_.topology.find(context);
      if (topology != raw_.topology.end()) {
        device.sm_count = static_cast<uint32_t>(topology->second.size());
        for (const RawSm& sm : topology->second) {
          if (sm.sm >= device.topology.size()) device.topology.resize(sm.sm + 1);
          device.topology[sm.sm] = {sm.tpc, sm.gpc};
        }
      }
      run_.facts.devices.push_back(std::move(device));
      run_.facts.contexts.push_back({.index = index, .device = index});
    }
  }

  void StateKernels() {
    for (uint32_t i = 0; i < raw_.modules.size(); ++i) {
      run_.facts.images.push_back({.index = i, .sm = raw_.modules[i].architecture});
    }
    for (const Buffers& buffers : buffers_) {
      const auto key = std::pair(buffers.launch->module, buffers.launch->kernel);
      const auto next = static_cast<uint32_t>(kernel_of_.size());
      if (!kernel_of_.try_emplace(key, next).second) continue;
      const auto& kernels = raw_.modules[key.first].kernels;
      const auto known = kernels.find(key.second);
      run_.facts.kernels.push_back({.index = next,
                                    .image = key.first,
                                    .mangled_name = key.second,
                                    .demangled_name = capture::DemangledName(key.second),
                                    .state = capture::KernelState::kPatched,
                                    .sites = known == kernels.end() ? 0 : known->second.sites});
    }
  }

  // The timer is the clock: a cycle is a nanosecond.
  void MakeClocks() {
    std::vector<uint32_t> sms(run_.model.devices.size());
    for (const Buffers& buffers : buffers_) {
      uint32_t& most = sms[device_of_.at(buffers.launch->context)];
      for (uint64_t i = 0; i < buffers.count; ++i) {
        const auto header = ReadWarpHeader(buffers.Warp(i));
        if (header && header->IsValid()) most = std::max(most, header->sm + 1u);
      }
    }
    for (uint32_t i = 0; i < sms.size(); ++i) {
      trace::Device& device = run_.model.devices[i];
      device.first_clock = static_cast<uint32_t>(run_.model.clocks.size());
      device.clock_count = sms[i];
      trace::SmClock clock;
      clock.knots.push_back({.cycles = 0, .ns = 0, .slope = 1});
      run_.model.clocks.resize(run_.model.clocks.size() + sms[i], clock);
    }
  }

  void ReadLaunch(const Buffers& buffers) {
    const RawLaunch& raw = *buffers.launch;
    trace::Model& model = run_.model;
    const auto row = static_cast<uint32_t>(model.launches.size());
    trace::Launch launch;
    launch.kernel = kernel_of_.at({raw.module, raw.kernel});
    launch.context = raw.context == 0 ? 0 : raw.context - 1;
    launch.device = device_of_.at(raw.context);
    launch.grid_id = raw.grid_id;
    launch.grid = raw.grid;
    launch.block = raw.block;
    launch.cluster = raw.cluster;
    launch.only_cluster = raw.only_cluster;
    if (raw.replay) {
      launch.graph = (*raw.replay)[0];
      launch.replay = (*raw.replay)[1];
    }
    launch.warps_expected =
        trace::WarpsExpected(raw.only_cluster ? ClusterSize(raw) : raw.grid, raw.block);
    launch.first_warp = static_cast<uint32_t>(model.warps.size());
    launch.first_ns = static_cast<double>(buffers.first_ns - model.origin_ns);
    const auto kernel = raw_.modules[raw.module].kernels.find(raw.kernel);
    const bool known = kernel != raw_.modules[raw.module].kernels.end();
    const RecordForms forms(raw_.modules[raw.module], known ? kernel->second.max_payload_bytes : 0);
    for (uint64_t i = 0; i < buffers.count; ++i) ReadWarp(buffers, i, forms, row, launch);

    launch.warp_count = static_cast<uint32_t>(model.warps.size()) - launch.first_warp;
    const uint64_t missing =
        launch.warps_expected - std::min<uint64_t>(launch.warps_expected, launch.warp_count);
    model.counters.warps_missing += missing;
    const bool whole = missing == 0 && launch.warps_begun == launch.warp_count &&
                       launch.warps_ended == launch.warp_count && launch.warps_suspect == 0;
    launch.completeness = whole ? trace::Completeness::kComplete : trace::Completeness::kPartial;
    model.launches.push_back(launch);
  }

  void ReadWarp(const Buffers& buffers, uint64_t index, const RecordForms& forms, uint32_t row,
                trace::Launch& launch) {
    records_.clear();
    const auto read = ReadWarpBuffer(buffers.Warp(index), forms, records_);
    if (!read) return;  // not recorded
    trace::Model& model = run_.model;
    trace::Counters& counters = model.counters;
    if (read->malformed || read->begin_ns < model.origin_ns) {
      ++counters.rings_invalid;
      return;
    }
    uint8_t flags = 0;
    if (!read->has_end) flags |= trace::kWarpEndMissing;
    if (read->early_exits != 0) flags |= trace::kWarpPartialExit;
    if (read->unknown != 0 || read->backward != 0) flags |= trace::kWarpSuspect;
    const uint64_t lost = (read->lost_bytes + forms.shortest_bytes() - 1) / forms.shortest_bytes();
    counters.records_kept += records_.size() + (read->has_end ? 1 : 0);
    counters.records_lost += lost;
    counters.unknown_ids += read->unknown;
    counters.backward_clocks += read->backward;
    counters.warps_end_missing += read->has_end ? 0 : 1;
    launch.lost_at_most += lost;
    launch.events_kept += records_.size();
    ++launch.warps_begun;
    launch.warps_ended += read->has_end ? 1 : 0;
    launch.warps_suspect += (flags & trace::kWarpSuspect) != 0 ? 1 : 0;
    const uint64_t end = read->end_ns - model.origin_ns;
    launch.last_ns = std::max(launch.last_ns, static_cast<double>(end));
    AddWarp(buffers, index, *read, flags, row);
    AddEvents(modules_[buffers.launch->module]);
  }

  void AddWarp(const Buffers& buffers, uint64_t index, const WarpBuffer& read, uint8_t flags,
               uint32_t row) {
    const RawLaunch& raw = *buffers.launch;
    trace::Model& model = run_.model;
    trace::Warps& warps = model.warps;
    const auto warp = static_cast<uint32_t>(index % buffers.warps_per_cta);
    const std::array<uint32_t, 3> cta = CtaOf(buffers, index / buffers.warps_per_cta);
    const uint32_t thread = warp * kThreadsPerWarp;
    const uint64_t begin = read.begin_ns - model.origin_ns;
    const uint64_t end = read.end_ns - model.origin_ns;
    warps.launch.push_back(row);
    warps.cta_x.push_back(cta[0]);
    warps.cta_y.push_back(static_cast<uint16_t>(cta[1]));
    warps.cta_z.push_back(static_cast<uint16_t>(cta[2]));
    warps.index.push_back(warp);
    warps.tid_x.push_back(static_cast<uint16_t>(thread % raw.block[0]));
    warps.tid_y.push_back(static_cast<uint16_t>(thread / raw.block[0] % raw.block[1]));
    warps.tid_z.push_back(
        static_cast<uint16_t>(thread / raw.block[0] / raw.block[1] % kThreadsPerWarp));
    warps.sm.push_back(read.sm);
    warps.slot.push_back(trace::kNoSlot);
    warps.flags.push_back(flags);
    warps.begin_cycles.push_back(begin);
    warps.end_cycles.push_back(end);
    warps.begin_ns.push_back(static_cast<double>(begin));
    warps.end_ns.push_back(static_cast<double>(end));
    warps.first_event.push_back(static_cast<uint32_t>(model.events.cycles.size()));
    warps.event_count.push_back(static_cast<uint32_t>(records_.size()));
    model.events.warp.resize(model.events.cycles.size() + records_.size(),
                             static_cast<uint32_t>(warps.size() - 1));
  }

  // x first, then y and z, as blockIdx counts; of one cluster the CTAs in the order of its ranks.
  static std::array<uint32_t, 3> CtaOf(const Buffers& buffers, uint64_t number) {
    const RawLaunch& raw = *buffers.launch;
    const auto in = [](uint64_t at, const std::array<uint32_t, 3>& size) {
      return std::array<uint32_t, 3>{static_cast<uint32_t>(at % size[0]),
                                     static_cast<uint32_t>(at / size[0] % size[1]),
                                     static_cast<uint32_t>(at / size[0] / size[1])};
    };
    if (!buffers.one_cluster) return in(number, raw.grid);
    const std::array<uint32_t, 3> size = ClusterSize(raw);
    std::array<uint32_t, 3> cta = in(number, size);
    for (size_t i = 0; i < cta.size(); ++i) cta[i] += (*raw.only_cluster)[i] * size[i];
    return cta;
  }

  void AddEvents(const ModuleRows& module) {
    trace::Model& model = run_.model;
    open_tokens_.clear();
    for (const WarpRecord& record : records_) {
      const uint64_t cycles = record.ns - model.origin_ns;
      const ModuleRows::Rows rows = module.Of(record.event);
      uint32_t row = rows.event;
      uint64_t payload = row == 0 ? record.event : module.Rule(row).Apply(record.payload);
      if (rows.end != 0) {
        const auto [open, is_begin] =
            open_tokens_.try_emplace(record.event, static_cast<uint32_t>(cycles));
        if (!is_begin) {
          row = rows.end;
          payload = TokenEnd(module.Rule(row), row, open->second, record.payload);
          open_tokens_.erase(open);
        }
      }
      model.events.declaration.push_back(row);
      model.events.cycles.push_back(cycles);
      model.events.payload.push_back(payload);
    }
  }

  // Ends carry their token above the payload (pair.h); what is wider than the rest is a value.
  uint64_t TokenEnd(const trace::PayloadRule& rule, uint32_t row, uint32_t token,
                    uint64_t payload) {
    const uint64_t value = rule.Apply(payload);
    if (trace::IsWide(run_.model.declarations[row].payload)) {
      trace::Values& values = run_.model.values;
      values.event.push_back(static_cast<uint32_t>(run_.model.events.cycles.size()));
      values.index.push_back(trace::Values::kPayload);
      values.value.push_back(payload);
    }
    return (value & 0xffffffffu) | uint64_t{token} << 32;
  }

  const RawRun& raw_;
  const FileOf& file_of_;
  Run run_;
  trace::StringInterner strings_;
  std::vector<Buffers> buffers_;
  std::map<uint32_t, uint32_t> device_of_;                          // by context
  std::map<std::pair<uint32_t, std::string>, uint32_t> kernel_of_;  // by module and name
  std::vector<ModuleRows> modules_;
  std::vector<WarpRecord> records_;           // of the warp at hand
  std::map<uint32_t, uint32_t> open_tokens_;  // of that warp: event -> the begin's clock
};

// "pid_0x1f" of the folder that run-iket makes for a process; 0 of another.
uint32_t ProcessOf(const std::filesystem::path& folder) {
  constexpr std::string_view kHead = "pid_0x";
  const std::string name = folder.filename().string();
  uint32_t pid = 0;
  if (!name.starts_with(kHead)) return 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kHead.size(), end, pid, 16);
  return read.ec == std::errc() && read.ptr == end ? pid : 0;
}

}  // namespace

Result<Run> MakeRun(const RawRun& raw, const FileOf& file_of, const Progress& progress) {
  return Reading(raw, file_of).Go(progress);
}

Result<Run> ReadRun(const std::string& path, const Progress& progress) {
  const auto json = MappedFile::Open(path, "run of run-iket");
  if (!json) return tl::unexpected(json.error());
  const auto raw = ParseRawRun(json->bytes(), path);
  if (!raw) return tl::unexpected(raw.error());
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::map<std::string, MappedFile> files;
  for (const RawLaunch& launch : raw->launches) {
    if (!launch.recorded || files.contains(launch.file)) continue;
    auto file = MappedFile::Open((folder / launch.file).string(),
                                 "file of warp buffers that iket.data.json names");
    if (!file) return tl::unexpected(file.error());
    files.emplace(launch.file, std::move(*file));
  }
  auto run =
      MakeRun(*raw, [&](const std::string& name) { return files.at(name).bytes(); }, progress);
  if (!run) return FailIn(path, run.error());
  if (const uint32_t pid = ProcessOf(folder); pid != 0) {
    run->facts.sessions.push_back({.ended = true, .pid = pid});
    run->model.process_id = pid;
  }
  return run;
}

}  // namespace iket::foreign
