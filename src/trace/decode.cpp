#include "trace/decode.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/column.h"
#include "trace/clock_alignment.h"
#include "trace/declarations.h"
#include "trace/facts.h"
#include "trace/flows.h"
#include "trace/grids.h"
#include "trace/host_time.h"
#include "trace/launch_times.h"
#include "trace/launches.h"
#include "trace/pair.h"
#include "trace/replays.h"
#include "trace/row_order.h"
#include "trace/runs.h"
#include "trace/strings.h"
#include "trace/timer_offset.h"
#include "trace/warp_scan.h"

namespace iket::trace {
namespace {

constexpr uint32_t kMaxSms = 1u << 16;
// For progress, in percent of 10 million events' time: unpacking the rings of all that Decode()
// takes, and of what Finish() does the parts up to the end of the scan and of the warps.
constexpr uint64_t kReadingShare = 43;
constexpr uint64_t kScanned = 57;
constexpr uint64_t kWarpsMade = 62;

class Decoding {
 public:
  Decoding(const capture::Capture& facts, int64_t read_host_ns)
      : facts_(facts), read_host_ns_(read_host_ns), strings_(model_.strings) {}

  // `forget` gives up what the records of the streams are in.
  Result<Model> Run(std::vector<RingStream> streams, const std::function<void()>& forget,
                    const Progress& progress) {
    StateFacts(facts_, strings_, model_);
    const Declarations declarations(facts_.declarations, facts_.attributes, strings_,
                                    model_.declarations);
    if (Result<void> ready = PrepareRings(streams); !ready) return tl::unexpected(ready.error());

    WarpScanner scanner(facts_, declarations, model_, spans_);
    for (uint32_t ring = 0; ring < streams.size(); ++ring) {
      model_.rings.suspect[ring] = scanner.Scan(streams[ring], ring) ? 1 : 0;
      if (progress) progress(kScanned * (ring + 1), 100 * streams.size());
    }
    MatchGrids();
    Align(streams);
    streams = {};
    forget();
    DoubtSuspectRings();
    FindReplays();
    MakeLaunches();
    MakeWarps();
    if (progress) progress(kWarpsMade, 100);
    OrderAndPair(progress);
    SummarizeLaunches();
    LinkFlows(model_);
    JoinHost(facts_, read_host_ns_, model_);
    PlaceHostMarks(facts_, strings_, model_);
    if (progress) progress(100, 100);
    return std::move(model_);
  }

 private:
  // Rows of rings and clocks. Streams that cannot be are taken out.
  Result<void> PrepareRings(std::vector<RingStream>& streams) {
    auto place = [&](const RingStream& stream) {
      const capture::Context* context = facts_.FindContext(stream.context);
      const uint32_t slots = context == nullptr || context->slots_per_sm == 0
                                 ? ring::kSlotsPerSm
                                 : context->slots_per_sm;
      return std::pair(stream.ring / slots, stream.ring % slots);
    };
    model_.counters.rings_invalid += std::erase_if(streams, [&](const RingStream& stream) {
      const auto [sm, slot] = place(stream);
      return !DeviceRow(facts_, stream.context) || sm >= kMaxSms || slot > UINT8_MAX;
    });

    uint64_t records = 0;
    std::vector<uint32_t> device_of_ring, sm_of_ring;
    for (const RingStream& stream : streams) {
      const auto [sm, slot] = place(stream);
      const uint32_t device = *DeviceRow(facts_, stream.context);
      device_of_ring.push_back(device);
      sm_of_ring.push_back(sm);
      Device& row = model_.devices[device];
      row.clock_count = std::max(row.clock_count, sm + 1);
      records += AddRing(stream, static_cast<uint16_t>(sm), static_cast<uint8_t>(slot));
    }
    if (records >= kNoRow) {
      return Fail(ErrorKind::kBadInput,
                  "the capture holds {} records, more than {}: profile fewer launches, or with "
                  "smaller rings",
                  records, kNoRow);
    }
    model_.events.declaration.reserve(records);
    model_.events.cycles.reserve(records);
    model_.events.payload.reserve(records);
    for (size_t i = 0; i < model_.devices.size(); ++i) {
      Device& device = model_.devices[i];
      device.first_clock = static_cast<uint32_t>(model_.clocks.size());
      model_.clocks.resize(model_.clocks.size() + device.clock_count);
      const uint32_t khz = facts_.devices[i].sm_clock_khz != 0 ? facts_.devices[i].sm_clock_khz
                                                               : device.sm_clock_max_khz;
      constexpr double kTypicalGhz = 1.5;
      gpu_of_clock_.resize(model_.clocks.size(), static_cast<uint32_t>(i));
      ghz_of_clock_.resize(model_.clocks.size(), khz == 0 ? kTypicalGhz : khz * 1e-6);
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      clock_of_ring_.push_back(model_.devices[device_of_ring[i]].first_clock + sm_of_ring[i]);
    }
    return {};
  }

  // Returns the number of records that the stream holds.
  uint64_t AddRing(const RingStream& stream, uint16_t sm, uint8_t slot) {
    uint64_t kept = 0, end = 0;
    for (const Stretch& stretch : stream.stretches) {
      kept += stretch.records.size();
      end = stretch.end();
    }
    const uint64_t written = std::max(stream.written / ring::kRecordBytes, kept);
    Rings& rings = model_.rings;
    rings.context.push_back(stream.context);
    rings.sm.push_back(sm);
    rings.slot.push_back(slot);
    rings.suspect.push_back(0);
    rings.written.push_back(written);
    rings.kept.push_back(kept);
    rings.lost.push_back(written - kept);
    rings.lost_lower_bound.push_back(stream.written_is_lower_bound ? 1 : 0);
    Counters& counters = model_.counters;
    counters.records_written += written;
    counters.records_kept += kept;
    counters.records_lost += written - kept;
    counters.lost_is_lower_bound += stream.written_is_lower_bound ? 1 : 0;
    counters.stale_records += stream.stale;
    counters.rings_short += end < stream.written && !stream.written_is_lower_bound ? 1 : 0;
    return kept;
  }

  void DoubtSuspectRings() {
    for (WarpSpan& span : spans_) {
      if (model_.rings.suspect[span.ring] != 0) span.flags |= kWarpSuspect;
    }
    model_.counters.suspect_rings =
        static_cast<uint64_t>(std::ranges::count(model_.rings.suspect, 1));
  }

  // Which grid each span is of, and when the host launched it.
  void MatchGrids() {
    for (size_t ring = 0; ring < model_.rings.size(); ++ring) {
      if (model_.rings.lost[ring] != 0) log_.LostRecords(model_.rings.context[ring]);
    }
    std::map<uint32_t, bool> none_ended;  // by context
    for (const WarpSpan& span : spans_) {
      const bool runs = (span.flags & kWarpRunning) != 0 && !span.header_end_known;
      const auto entry = none_ended.try_emplace(model_.rings.context[span.ring], true).first;
      entry->second &= runs;
    }
    for (const auto& [context, none] : none_ended) {
      if (none) log_.NoneEnded(context);
    }
    grids_ = FindGrids(spans_, model_.rings.context, log_);
    host_ns_.resize(spans_.size());
    for (size_t i = 0; i < spans_.size(); ++i) {
      const uint32_t match = grids_.matches[grids_.grid_of_span[i]];
      host_ns_[i] = match == kNoRow ? 0 : facts_.launches[match].host_ns;
    }
  }

  void Align(std::span<const RingStream> streams) {
    const LaunchTimes launched(facts_);
    const std::vector<uint32_t>& contexts = model_.rings.context;
    const auto offsets = TimerOffsets(facts_, streams, spans_, contexts, launched);
    for (WarpSpan& span : spans_) {
      const auto offset = offsets.find(contexts[span.ring]);
      if (span.read_host_ns == 0 || offset == offsets.end()) continue;
      span.begun_by_timer_ns =
          static_cast<uint64_t>(span.read_host_ns) + static_cast<uint64_t>(offset->second);
    }
    const auto since_launch = [&](const WarpSpan& span, uint64_t timer_ns) {
      const uint32_t context = contexts[span.ring];
      const auto offset = offsets.find(context);
      if (offset == offsets.end()) return std::optional<uint64_t>();
      // The offset is not known to the nanosecond: a warp may seem to begin before its launch.
      constexpr uint64_t kOffsetDoubtNs = 10'000'000;
      const uint64_t by_ns = timer_ns - static_cast<uint64_t>(offset->second) + kOffsetDoubtNs;
      const auto latest =
          launched.LatestBy(context, span.kernel_number, static_cast<int64_t>(by_ns));
      if (!latest) return std::optional<uint64_t>();
      const uint64_t since_ns = by_ns - static_cast<uint64_t>(*latest);
      return std::optional(since_ns - std::min(since_ns, kOffsetDoubtNs));
    };
    std::vector<std::vector<capture::ClockExchange>> exchanges;
    for (const Device& device : model_.devices) {
      exchanges.push_back(ExchangesOf(facts_, device.index));
    }
    AlignClocks({.spans = spans_,
                 .host_ns = host_ns_,
                 .since_launch = since_launch,
                 .clock_of_ring = clock_of_ring_,
                 .gpu_of_clock = gpu_of_clock_,
                 .ghz_of_clock = ghz_of_clock_,
                 .exchanges_of_gpu = exchanges},
                model_);
  }

  // Which grid each span is of that a graph ran, which needs the times of their warps.
  void FindReplays() {
    grids_.runs.resize(grids_.grids.size());
    if (!facts_.graph_nodes.empty()) {
      Column<SpanTime> times;
      times.reserve(spans_.size());
      for (const WarpSpan& span : spans_) {
        times.push_back({NsOf(span, 0), NsOf(span, EndOffset(span))});
      }
      SplitReplays({spans_, times, model_.rings.context, model_.rings.lost}, runs_, grids_);
    }
    const uint64_t expected = log_.expected() + runs_.expected();
    model_.counters.launches_unmatched = grids_.identified - grids_.Matched();
    // Of the promised launches that none was matched with, as many are among those that were not.
    const uint64_t unseen = expected - std::min(expected, grids_.Promised());
    model_.counters.launches_unseen = unseen - std::min(unseen, model_.counters.launches_unmatched);
  }

  // Rows of launches, by their first moment; launch_of_span_.
  void MakeLaunches() {
    std::vector<double> first_ns(grids_.grids.size(), std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < spans_.size(); ++i) {
      double& first = first_ns[grids_.grid_of_span[i]];
      first = std::min(first, NsOf(spans_[i], 0));
    }
    std::vector<uint32_t> order(grids_.grids.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](uint32_t grid) { return first_ns[grid]; });
    std::vector<uint32_t> launch_of_grid(grids_.grids.size());
    for (uint32_t i = 0; i < order.size(); ++i) {
      launch_of_grid[order[i]] = i;
      AddLaunch(grids_.grids[order[i]], grids_.matches[order[i]], grids_.runs[order[i]]);
    }
    launch_of_span_.resize(spans_.size());
    for (size_t i = 0; i < spans_.size(); ++i) {
      launch_of_span_[i] = launch_of_grid[grids_.grid_of_span[i]];
    }
  }

  void AddLaunch(const Grid& grid, uint32_t match, const GridRun& run) {
    Launch launch;
    const uint32_t kernel = match != kNoRow ? facts_.launches[match].kernel : grid.kernel;
    launch.kernel = kernel == kNoRow ? kNoRow : KernelRow(facts_, kernel);
    launch.context = grid.context;
    launch.device = *DeviceRow(facts_, grid.context);
    launch.grid_id = grid.grid_id;
    const capture::KernelFilter* const filter = facts_.FindFilter(kernel);
    if (filter != nullptr && filter->by_cluster) launch.only_cluster = filter->cluster;
    const uint32_t shape = match != kNoRow ? match : log_.SharedShape(grid.context, kernel);
    if (shape != kNoRow) {
      const capture::Launch& from = facts_.launches[shape];
      launch.grid = Sizes(from.grid);
      launch.block = Sizes(from.block);
      launch.cluster = Sizes(from.cluster);
      launch.warps_expected = Expected(kernel, launch);
    }
    if (match != kNoRow) {
      const capture::Launch& from = facts_.launches[match];
      launch.sequence = static_cast<uint32_t>(from.sequence);
      launch.stream = from.stream;
      launch.host_ns = static_cast<uint64_t>(from.host_ns);
      launch.dynamic_shared_bytes = from.dynamic_shared_bytes;
      launch.cooperative = from.cooperative;
    }
    if (run.found && match == kNoRow) TakeRun(run, kernel, launch);
    model_.launches.push_back(launch);
  }

  uint64_t Expected(uint32_t kernel, const Launch& launch) const {
    return WarpsExpected(facts_.FindFilter(kernel), launch.grid, launch.block, launch.cluster);
  }

  // What is known of a launch by a graph.
  void TakeRun(const GridRun& run, uint32_t kernel, Launch& launch) const {
    launch.grid = Sizes(run.shape.grid);
    launch.block = Sizes(run.shape.block);
    launch.cluster = Sizes(run.shape.cluster);
    launch.warps_expected = Expected(kernel, launch);
    launch.graph = run.graph;
    launch.node = run.node;
    launch.replay = run.replay;
    if (!run.of_log) return;
    launch.sequence = static_cast<uint32_t>(run.sequence);
    launch.stream = run.stream;
    launch.host_ns = static_cast<uint64_t>(facts_.graph_launches[run.graph_launch].host_ns);
    launch.dynamic_shared_bytes = run.shape.dynamic_shared_bytes;
    launch.cooperative = run.shape.cooperative;
  }

  // Cycles from a span's first record to its last moment.
  static int64_t EndOffset(const WarpSpan& span) {
    return span.has_end ? span.end_offset : span.last_offset;
  }
  double NsOf(const WarpSpan& span, int64_t offset) const {
    return model_.clocks[clock_of_ring_[span.ring]].NsOf(
        static_cast<uint64_t>(span.base_cycles + offset));
  }

  void OrderAndPair(const Progress& progress) {
    RowOrder order(spans_, span_of_warp_, model_);
    const bool in_files = ColumnsAreInFiles();
    if (in_files) order.TakeAll();
    PairRanges(model_, in_files ? model_.events.declaration : order.declarations(),
               [&](uint32_t warp) {
                 if (!in_files) order.Take(warp);
                 constexpr uint32_t kPeriod = 1024;
                 if (!progress || warp % kPeriod != 0) return;
                 const uint64_t warps = model_.warps.size();
                 progress(kWarpsMade * warps + (100 - kWarpsMade) * warp, 100 * warps);
               });
  }

  // Rows of warps, by launch, CTA and index.
  void MakeWarps() {
    struct Row {
      uint64_t key;  // CTA z, y, x
      uint32_t index;
      uint32_t span;

      auto operator<=>(const Row&) const = default;
    };
    // First by launch, which is a count, then within each.
    std::vector<size_t> next(model_.launches.size() + 1);
    for (uint32_t launch : launch_of_span_) ++next[launch + 1];
    for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    Column<Row> rows(spans_.size());
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const ring::Identity& identity = spans_[i].identity;
      const uint32_t launch = launch_of_span_[i];
      const uint32_t index =
          spans_[i].has_identity ? WarpIndex(identity, model_.launches[launch].block) : kNoRow;
      rows[next[launch]++] = {
          uint64_t{identity.cta_z} << 48 | uint64_t{identity.cta_y} << 32 | identity.cta_x, index,
          i};
    }
    size_t begin = 0;
    for (size_t launch = 0; launch < model_.launches.size(); ++launch) {
      std::ranges::sort(std::span(rows).subspan(begin, next[launch] - begin));
      begin = next[launch];
    }

    Warps& warps = model_.warps;
    ReserveWarps(rows.size());
    span_of_warp_.reserve(rows.size());
    for (const Row& row : rows) {
      const uint32_t warp = static_cast<uint32_t>(warps.size());
      const WarpSpan& span = spans_[row.span];
      warps.launch.push_back(launch_of_span_[row.span]);
      warps.cta_x.push_back(span.identity.cta_x);
      warps.cta_y.push_back(span.identity.cta_y);
      warps.cta_z.push_back(span.identity.cta_z);
      warps.index.push_back(row.index);
      warps.tid_x.push_back(span.identity.tid_x);
      warps.tid_y.push_back(span.identity.tid_y);
      warps.tid_z.push_back(span.identity.tid_z);
      warps.sm.push_back(model_.rings.sm[span.ring]);
      warps.slot.push_back(model_.rings.slot[span.ring]);
      warps.flags.push_back(span.flags);
      warps.begin_cycles.push_back(static_cast<uint64_t>(span.base_cycles));
      warps.end_cycles.push_back(static_cast<uint64_t>(span.base_cycles + EndOffset(span)));
      warps.begin_ns.push_back(NsOf(span, 0));
      warps.end_ns.push_back(NsOf(span, EndOffset(span)));
      warps.first_event.push_back(0);  // row_order.h says
      warps.event_count.push_back(span.event_count);
      span_of_warp_.push_back(row.span);
      CountWarp(span, model_.launches[launch_of_span_[row.span]], warp);
    }
  }

  void ReserveWarps(size_t count) {
    Warps& warps = model_.warps;
    auto reserve = [count](auto&... column) { (column.reserve(count), ...); };
    reserve(warps.launch, warps.cta_x, warps.cta_y, warps.cta_z, warps.index, warps.tid_x,
            warps.tid_y, warps.tid_z, warps.sm, warps.slot, warps.flags, warps.begin_cycles,
            warps.end_cycles, warps.begin_ns, warps.end_ns, warps.first_event, warps.event_count);
  }

  void CountWarp(const WarpSpan& span, Launch& launch, uint32_t warp) {
    const bool begun = (span.flags & kWarpBeginMissing) == 0;
    const bool ended = (span.flags & kWarpEndMissing) == 0;
    const bool suspect = (span.flags & kWarpSuspect) != 0;
    const double first = model_.warps.begin_ns[warp], last = model_.warps.end_ns[warp];
    if (launch.warp_count == 0) {
      launch.first_warp = warp;
      launch.first_ns = first;
      launch.last_ns = last;
    }
    launch.first_ns = std::min(launch.first_ns, first);
    launch.last_ns = std::max(launch.last_ns, last);
    ++launch.warp_count;
    launch.warps_begun += begun ? 1 : 0;
    launch.warps_ended += ended ? 1 : 0;
    launch.warps_suspect += suspect ? 1 : 0;
    launch.warps_holed += (span.flags & kWarpHoled) != 0 ? 1 : 0;
    launch.warps_orphan += (span.flags & kWarpOrphan) != 0 ? 1 : 0;
    launch.events_kept += span.event_count;
    Counters& counters = model_.counters;
    counters.warps_begin_missing += begun ? 0 : 1;
    counters.warps_end_missing += ended ? 0 : 1;
    counters.warps_running += (span.flags & kWarpRunning) != 0 ? 1 : 0;
    counters.unknown_kernels += span.kernel_number != kNoRow && launch.kernel == kNoRow ? 1 : 0;
  }

  void SummarizeLaunches() {
    for (size_t i = 0; i < spans_.size(); ++i) {
      const WarpSpan& span = spans_[i];
      const bool oldest_of_ring = i == 0 || spans_[i - 1].ring != span.ring;
      if ((oldest_of_ring && (span.flags & kWarpBeginMissing) != 0) ||
          (span.flags & kWarpHoled) != 0) {
        model_.launches[launch_of_span_[i]].lost_at_most += model_.rings.lost[span.ring];
      }
    }
    for (Launch& launch : model_.launches) {
      if (IsBySm(launch)) {
        const bool whole = launch.warps_suspect == 0 && launch.warps_begun == launch.warp_count &&
                           launch.warps_ended == launch.warp_count && LostNothing(launch.context);
        launch.completeness = whole ? Completeness::kComplete : Completeness::kPartial;
        continue;
      }
      const uint64_t expected = launch.warps_expected;
      // More warps than the grid has: several runs that nothing tells apart (replays.h).
      if (expected == 0 || launch.warp_count > expected) continue;
      model_.counters.warps_missing += expected - launch.warp_count;
      const bool whole = launch.warps_begun == expected && launch.warps_ended == expected &&
                         launch.warps_suspect == 0 && launch.warps_holed == 0;
      launch.completeness = whole ? Completeness::kComplete : Completeness::kPartial;
    }
  }

  // How many warps such a launch must have left, nobody knows: it is complete if they all are whole
  // and nothing of its context was lost.
  bool IsBySm(const Launch& launch) const {
    if (launch.kernel == kNoRow) return false;
    const capture::KernelFilter* filter = facts_.FindFilter(facts_.kernels[launch.kernel].index);
    return filter != nullptr && filter->by_sm;
  }
  bool LostNothing(uint32_t context) const {
    for (uint32_t ring = 0; ring < model_.rings.size(); ++ring) {
      if (model_.rings.context[ring] == context && model_.rings.lost[ring] != 0) return false;
    }
    return true;
  }

  const capture::Capture& facts_;
  int64_t read_host_ns_;
  Model model_;
  StringInterner strings_;
  RunLog runs_{facts_};
  LaunchLog log_{facts_, runs_};
  Column<WarpSpan> spans_;  // ring by ring
  Grids grids_;
  Column<int64_t> host_ns_;          // of each span's launch; 0 unknown
  Column<uint32_t> launch_of_span_;  // row of Model::launches
  Column<uint32_t> span_of_warp_;
  std::vector<uint32_t> clock_of_ring_;  // row of Model::clocks
  std::vector<uint32_t> gpu_of_clock_;   // row of Model::devices
  std::vector<double> ghz_of_clock_;     // nominal
};

}  // namespace

Result<Model> Decoder::Finish(const Progress& progress) {
  std::vector<RingStream> streams = rings_.Streams([&](uint32_t index) -> uint64_t {
    const capture::Context* context = facts_.FindContext(index);
    return context == nullptr ? 0 : context->ring_bytes;
  });
  return Decoding(facts_, read_host_ns_).Run(std::move(streams), [this] { rings_ = {}; }, progress);
}

Result<Model> Decode(const capture::Reader& reader, const Progress& progress) {
  Decoder decoder(reader.capture());
  if (ColumnsAreInFiles()) decoder.Expect(reader.CountRingRecords());
  uint64_t blocks = 0;
  const capture::RingWalk walk = reader.ForEachRingBlock([&](const capture::RingBlock& block) {
    decoder.Add(block);
    ++blocks;
    if (progress) progress(kReadingShare * blocks, 100 * reader.ring_block_count());
    return true;
  });
  Result<Model> model = decoder.Finish([&](uint64_t done, uint64_t total) {
    if (progress) progress(kReadingShare * total + (100 - kReadingShare) * done, 100 * total);
  });
  if (model) model->counters.chunks_damaged += walk.blocks_malformed;
  return model;
}

}  // namespace iket::trace
