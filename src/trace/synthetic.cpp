#include "trace/synthetic.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace iket::trace {
namespace {

using ring::kRecordBytes;
using ring::Record;
using ring::RecordKind;

}  // namespace

SyntheticGpu::SyntheticGpu(SyntheticShape shape)
    : shape_(shape), ghz_(shape.ghz), sms_(shape.sms), rings_(shape.sms * ring::kSlotsPerSm) {
  for (uint32_t sm = 0; sm < shape.sms; ++sm) sms_[sm].cycles = 1e9 + sm * 123'456'789.0;
  facts_.sessions.push_back({.index = 0,
                             .ended = true,
                             .pid = 4711,
                             .exit_status = 0,
                             .tool_version = "0.1.0",
                             .command_line = {"./paper", "--size", "4096"},
                             .host = "paper"});
  facts_.devices.push_back({.index = 0,
                            .name = "Paper GPU",
                            .compute_major = 9,
                            .compute_minor = 0,
                            .sm_count = shape.sms,
                            .sm_clock_max_khz = static_cast<uint32_t>(shape.ghz * 1e6),
                            .sm_clock_khz = static_cast<uint32_t>(shape.ghz * 1e6)});
  facts_.images.push_back({.index = 0, .sm = 90, .marked_functions = 1, .source = "paper"});
  facts_.contexts.push_back(
      {.index = 0, .device = 0, .ring_bytes = shape.ring_bytes, .sm_count = shape.sms});
}

uint32_t SyntheticGpu::AddKernel(std::string_view name) {
  const uint32_t number = static_cast<uint32_t>(facts_.kernels.size());
  facts_.kernels.push_back({.index = number,
                            .image = 0,
                            .mangled_name = std::string(name),
                            .demangled_name = std::string(name) + "(float*)",
                            .state = capture::KernelState::kPatched});
  return number;
}

uint32_t SyntheticGpu::Declare(capture::EventKind kind, std::string_view name,
                               capture::PayloadType payload) {
  uint32_t hash = 0x811c9dc5u;
  auto add = [&hash](uint32_t byte) { hash = (hash ^ byte) * 0x01000193u; };
  add(static_cast<uint32_t>(kind));
  add(static_cast<uint32_t>(payload));
  for (char c : name) add(static_cast<unsigned char>(c));
  const uint32_t id = std::max(hash & ring::kEventIdMask, 1u);
  facts_.declarations.push_back(
      {.image = 0, .event = id, .kind = kind, .payload = payload, .name = std::string(name)});
  std::ranges::sort(facts_.declarations, {}, &capture::Declaration::event);
  return id;
}

uint32_t SyntheticGpu::Launch(uint32_t kernel, capture::Dim3 grid, capture::Dim3 block) {
  facts_.launches.push_back({.sequence = facts_.launches.size(),
                             .host_ns = static_cast<int64_t>(now_ns_),
                             .kernel = kernel,
                             .context = 0,
                             .grid = grid,
                             .block = block});
  return LaunchUnlogged(kernel);
}

uint32_t SyntheticGpu::LaunchUnlogged(uint32_t kernel) {
  kernel_of_grid_.push_back(kernel);
  return kFirstGridId + static_cast<uint32_t>(kernel_of_grid_.size() - 1);
}

void SyntheticGpu::Pass(double ns) {
  now_ns_ += ns;
  for (Sm& sm : sms_) sm.cycles += ns * ghz_ * (1 + sm.drift);
}

void SyntheticGpu::SetClock(uint32_t sm, uint64_t cycles) {
  sms_[sm].cycles = static_cast<double>(cycles);
}

void SyntheticGpu::SetDrift(uint32_t sm, double share) { sms_[sm].drift = share; }

SyntheticGpu::WarpId SyntheticGpu::Begin(uint32_t grid_id, uint32_t cta, uint32_t index,
                                         uint32_t sm, uint32_t slot) {
  const WarpId id = static_cast<WarpId>(warps_.size());
  const uint32_t kernel = kernel_of_grid_[grid_id - kFirstGridId];
  Warp warp{.ring = sm * ring::kSlotsPerSm + slot,
            .kernel = kernel,
            .identity = {.cta_x = cta, .grid = grid_id, .tid_x = static_cast<uint16_t>(index * 32)},
            .index = index};
  warps_.push_back(warp);
  Ring& ring = rings_[warp.ring];
  if (ring.records.empty()) ring.records.resize(records_per_ring());
  ring.written = ring.cursor;
  ring.running = true;
  Store(id,
        {.clock = static_cast<uint32_t>(Cycles(sm)),
         .tag = ring::BeginTag(kernel),
         .low = static_cast<uint32_t>(Timer()),
         .high = ring.header.end_clock},
        {.warp = id, .kind = RecordKind::kBegin});
  ring.header.identity = {
      .clock = cta, .tag = ring::kTagIdentity | warp.identity.tid_x, .low = 0, .high = grid_id};
  Store(id, ring.header.identity, {.warp = id, .kind = RecordKind::kIdentity});
  return id;
}

void SyntheticGpu::Event(WarpId warp, uint32_t id, uint64_t payload) {
  const uint32_t sm = SmOf(warps_[warp].ring);
  Store(warp,
        {.clock = static_cast<uint32_t>(Cycles(sm)),
         .tag = id,
         .low = static_cast<uint32_t>(payload),
         .high = static_cast<uint32_t>(payload >> 32)},
        {.warp = warp, .kind = RecordKind::kEvent, .id = id, .payload = payload});
}

void SyntheticGpu::More(WarpId warp, uint32_t index, uint64_t payload) {
  More(warp, index, payload, static_cast<uint32_t>(Cycles(SmOf(warps_[warp].ring))));
}

void SyntheticGpu::More(WarpId warp, uint32_t index, uint64_t payload, uint32_t clock) {
  Store(warp,
        {.clock = clock,
         .tag = ring::kTagMore + index,
         .low = static_cast<uint32_t>(payload),
         .high = static_cast<uint32_t>(payload >> 32)},
        {.warp = warp, .kind = RecordKind::kMore});
}

void SyntheticGpu::Exit(WarpId warp, bool last) {
  Ring& ring = rings_[warps_[warp].ring];
  const uint64_t timer = Timer();
  ring.cursor = ring.written;
  ring.header.cursor = static_cast<uint32_t>(ring.cursor);
  ring.header.end_clock = static_cast<uint32_t>(Cycles(SmOf(warps_[warp].ring)));
  ring.header.end_timer_low = static_cast<uint32_t>(timer);
  ring.header.end_timer_high = static_cast<uint32_t>(timer >> 32);
  warps_[warp].end_cycles = Cycles(SmOf(warps_[warp].ring));
  if (last) {
    ring.running = false;
    warps_[warp].ended = true;
  }
}

void SyntheticGpu::Store(WarpId warp, const Record& record, const Truth& truth) {
  Ring& ring = rings_[warps_[warp].ring];
  ring.records[ring.written / kRecordBytes % records_per_ring()] = record;
  ring.written += kRecordBytes;
  if (!shape_.keep_log) return;
  ring.log.push_back(truth);
  ring.log.back().cycles = Cycles(SmOf(warps_[warp].ring));
  ring.log.back().ns = now_ns_;
}

uint64_t SyntheticGpu::Timer() const {
  const uint64_t ns = static_cast<uint64_t>(now_ns_);
  return shape_.timer_origin_ns + ns / shape_.timer_step_ns * shape_.timer_step_ns;
}

capture::RingBlock SyntheticGpu::Read() {
  capture::RingBlock block;
  block.last_of_moment = true;
  block.moment.begin_ns = static_cast<int64_t>(now_ns_);
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    Ring& ring = rings_[i];
    if (ring.records.empty()) continue;
    const uint64_t kept = std::min<uint64_t>(ring.cursor, shape_.ring_bytes);
    capture::RingRow row{.ring = i, .written = ring.cursor, .header = ring.header};
    if (kept == shape_.ring_bytes || ring.running) {
      // The whole ring, from the cursor on: behind the cursor a running warp may have written.
      ring.rotated.resize(records_per_ring());
      const size_t at = ring.cursor / kRecordBytes % records_per_ring();
      std::ranges::rotate_copy(ring.records, ring.records.begin() + static_cast<ptrdiff_t>(at),
                               ring.rotated.begin());
      row.written = ring.running ? ring.cursor + shape_.ring_bytes : ring.cursor;
      row.first = row.written - shape_.ring_bytes;
      row.records = ring.rotated;
    } else {
      row.records = std::span(ring.records).first(kept / kRecordBytes);
    }
    block.rows.push_back(row);
  }
  return block;
}

Result<void> SyntheticGpu::Write(capture::Writer& writer) {
  Result<void> result = writer.Append(std::span<const capture::Session>(facts_.sessions));
  for (const capture::Device& device : facts_.devices) {
    if (result) result = writer.Append(device);
  }
  if (result) result = writer.Append(std::span<const capture::Image>(facts_.images));
  if (result) result = writer.Append(std::span<const capture::Kernel>(facts_.kernels));
  if (result) result = writer.Append(std::span<const capture::Declaration>(facts_.declarations));
  if (result) result = writer.Append(std::span<const capture::Context>(facts_.contexts));
  if (result) result = writer.Append(std::span<const capture::Launch>(facts_.launches));
  if (!result) return result;
  const capture::RingBlock block = Read();
  std::vector<capture::RingContents> contents;
  for (const capture::RingRow& row : block.rows) {
    contents.push_back(
        {.ring = row.ring, .written = row.written, .older = row.records, .header = row.header});
  }
  return writer.Append(capture::RingMoment{}, contents);
}

SyntheticGpu BusyGpu(uint64_t events, uint32_t sms, uint32_t warps_per_sm) {
  constexpr uint32_t kEventsPerRound = 8;
  const uint32_t warps = sms * warps_per_sm;
  const uint64_t rounds = std::max<uint64_t>(events / warps / kEventsPerRound, 1);
  SyntheticGpu gpu({.sms = sms,
                    .ring_bytes = static_cast<uint32_t>(std::bit_ceil(
                        std::max<uint64_t>((rounds * kEventsPerRound + 2) * kRecordBytes, 4096))),
                    .keep_log = false});
  using Kind = capture::EventKind;
  const uint32_t kernel = gpu.AddKernel("busy");
  const uint32_t tile = gpu.Declare(Kind::kPush, "tile", capture::PayloadType::kU32);
  const uint32_t load = gpu.Declare(Kind::kPush, "load");
  const uint32_t pop = gpu.Declare(Kind::kPop, "");
  const uint32_t mma = gpu.Declare(Kind::kRangeBegin, "mma", capture::PayloadType::kI32);
  const uint32_t mma_end = gpu.Declare(Kind::kRangeEnd, "mma");
  const uint32_t arrive = gpu.Declare(Kind::kMark, "arrive");
  const uint32_t value = gpu.Declare(Kind::kMark, "value", capture::PayloadType::kF32);
  const uint32_t grid = gpu.Launch(kernel, {sms, 1, 1}, {warps_per_sm * 32, 1, 1});

  std::vector<SyntheticGpu::WarpId> running;
  for (uint32_t sm = 0; sm < sms; ++sm) {
    for (uint32_t i = 0; i < warps_per_sm; ++i) {
      gpu.Pass(1);
      running.push_back(gpu.Begin(grid, sm, i, sm, i));
    }
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    const std::pair<uint32_t, uint64_t> story[kEventsPerRound] = {
        {tile, round}, {load, 0},    {arrive, 0},
        {pop, 0},      {mma, round}, {value, std::bit_cast<uint32_t>(1.5f)},
        {mma_end, 0},  {pop, 0}};
    for (const auto& [id, payload] : story) {
      gpu.Pass(40);
      for (SyntheticGpu::WarpId warp : running) gpu.Event(warp, id, payload);
    }
  }
  for (SyntheticGpu::WarpId warp : running) gpu.Exit(warp);
  return gpu;
}

}  // namespace iket::trace
