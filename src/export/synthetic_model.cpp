#include "export/synthetic_model.h"

#include <algorithm>
#include <bit>
#include <random>
#include <string>

namespace iket::exporter {
namespace {

using trace::EventKind;
using trace::kNoRow;
using trace::PayloadType;

class Maker {
 public:
  explicit Maker(const SyntheticOptions& options) : options_(options), random_(options.seed) {}

  trace::Model Make() {
    MakeFacts();
    for (uint32_t launch = 0; launch < options_.launches; ++launch) MakeLaunch(launch);
    model_.counters.records_kept = model_.events.size() + 4 * model_.warps.size();
    model_.counters.records_written = model_.counters.records_kept;
    if (options_.faults) {
      model_.counters.records_written += 7;
      model_.counters.records_lost = 7;
      model_.counters.unmatched_ends = model_.unmatched_ends.size();
    }
    return std::move(model_);
  }

 private:
  struct Open {
    uint32_t range;
    uint32_t declaration;
    bool scoped;
  };

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  bool OneIn(uint32_t n) { return options_.faults && Below(n) == 0; }

  trace::StringId String(std::string text) {
    model_.strings.push_back(std::move(text));
    return static_cast<trace::StringId>(model_.strings.size() - 1);
  }

  void Declare(EventKind kind, PayloadType payload, trace::StringId name) {
    model_.declarations.push_back({.id = 100 + static_cast<uint32_t>(model_.declarations.size()),
                                   .kind = kind,
                                   .payload = payload,
                                   .name = name});
    if (model_.declarations.size() % 3 == 0) {  // some are built with line tables
      model_.declarations.back().file = String("src/kernel.cu");
      model_.declarations.back().line = static_cast<uint32_t>(model_.declarations.size());
    }
  }

  // Declarations: 0..6 marks of every payload type, 7 pop, then pushes, then pairs of range begin
  // and range end, tokens, flows, what has rows of its own, and last the unknown event.
  void MakeFacts() {
    model_.process_id = 4711;
    model_.command = String("./app --fast \"x\"");
    model_.host = String("host");
    model_.origin_ns = 1'764'000'000'000'000'000;
    trace::Device& device = model_.devices.emplace_back();
    device.name = String("NVIDIA H200");
    device.uuid = String("00ff");
    device.sm_count = options_.sms;
    device.clock_count = options_.sms;
    device.compute_major = 9;
    device.sm_clock_max_khz = 1'980'000;
    if (options_.seed % 2 == 1) {
      for (int32_t sm = 0; sm < static_cast<int32_t>(options_.sms); ++sm) {
        device.places.push_back({.tpc = sm / 2, .gpc = sm % 3 - 1});
      }
    }
    for (uint32_t sm = 0; sm < options_.sms; ++sm) {
      trace::SmClock clock;
      clock.knots = {{.cycles = 1000 * sm, .ns = 0, .slope = 0.505}};
      if (sm % 2 == 1 && sm < 50)
        clock.knots.push_back({.cycles = 50'000, .ns = clock.NsOf(50'000), .slope = 0.61});
      clock.pairs = 10;
      model_.clocks.push_back(clock);
    }
    for (const char* name : {"saxpy", "gemm"}) {
      model_.kernels.push_back({.mangled = String(std::string("_Z") + name),
                                .demangled = String(std::string("void ") + name + "<int>(int*)"),
                                .short_name = String(name)});
    }
    model_.kernels.push_back({.mangled = String("_Zbad"),
                              .demangled = String("bad()"),
                              .short_name = String("bad"),
                              .refusal = String("names UR2 at 0x40")});
    for (auto type : {PayloadType::kNone, PayloadType::kU32, PayloadType::kS32, PayloadType::kF32,
                      PayloadType::kU64, PayloadType::kS64, PayloadType::kF64}) {
      Declare(EventKind::kMark, type, String("mark" + std::to_string(static_cast<int>(type))));
    }
    Declare(EventKind::kPop, PayloadType::kNone, 0);
    first_push_ = Count();
    Declare(EventKind::kPush, PayloadType::kU32, String("load"));
    Declare(EventKind::kPush, PayloadType::kNone, String("wait \xc3\xa9\"\\"));
    first_scoped_ = Count();
    for (const char* name : {"mma", "epilogue"}) {
      const trace::StringId id = String(name);
      Declare(EventKind::kRangeBegin, PayloadType::kF32, id);
      Declare(EventKind::kRangeEnd, name[0] == 'm' ? PayloadType::kS32 : PayloadType::kNone, id);
    }
    first_token_ = Count();
    for (const char* name : {"tile", "stage"}) {
      const trace::StringId id = String(name);
      Declare(EventKind::kTokenBegin, PayloadType::kU32, id);
      Declare(EventKind::kTokenEnd, PayloadType::kU32, id);
    }
    flow_out_ = Count();
    Declare(EventKind::kFlowOut, PayloadType::kU32, String("full"));
    Declare(EventKind::kFlowIn, PayloadType::kU32, String("full"));
    DeclareRows();
    unknown_ = Count();
    Declare(EventKind::kUnknown, PayloadType::kNone, 0);
    slot_free_.assign(size_t{options_.sms} * 64, 0);
  }

  // A mark of a group with several values, whose names are awkward; ranges of a lane with values at
  // both ends.
  void DeclareRows() {
    many_ = Count();
    Declare(EventKind::kMark, PayloadType::kS32, String("many"));
    trace::Declaration& many = model_.declarations.back();
    many.payload_name = String("m");
    many.more = {{String("cycles"), PayloadType::kF64},
                 {many.payload_name, PayloadType::kU32},
                 {String("end_m"), PayloadType::kS64}};
    many.group = String("producer");
    many.category = String("io");
    lane_ = Count();
    const trace::StringId name = String("wgmma"), lane = String("tensor");
    for (const auto kind : {EventKind::kRangeBegin, EventKind::kRangeEnd}) {
      Declare(kind, PayloadType::kU32, name);
      trace::Declaration& declaration = model_.declarations.back();
      declaration.payload_name = many.payload_name;
      declaration.more = {{String("n"), PayloadType::kF32}};
      declaration.lane = lane;
    }
  }

  uint32_t Count() const { return static_cast<uint32_t>(model_.declarations.size()); }

  void MakeLaunch(uint32_t number) {
    trace::Launch launch;
    launch.kernel = number % 2;
    launch.grid_id = number + 10;
    launch.stream = number % 3 == 2 ? 0x7f00 : 0;
    if (!OneIn(4)) {
      launch.sequence = number;
      launch.grid = {options_.ctas, 1, 1};
      launch.block = {options_.warps_per_cta * 32, 1, 1};
      launch.completeness =
          OneIn(3) ? trace::Completeness::kPartial : trace::Completeness::kComplete;
      launch.warps_expected = uint64_t{options_.ctas} * options_.warps_per_cta;
    }
    launch.first_warp = static_cast<uint32_t>(model_.warps.size());
    launch.warp_count = options_.ctas * options_.warps_per_cta;
    launch.warps_begun = launch.warps_ended = launch.warp_count;
    launch.events_kept = model_.events.size();
    launch.first_ns = 1e300;
    model_.launches.push_back(launch);
    // Launches overlap, but begin one after the other, whatever the SMs' clocks say.
    const uint64_t earliest = number * (2500 + uint64_t{options_.events_per_warp} * 40);
    for (uint64_t& free : slot_free_) free = std::max(free, earliest);
    for (uint32_t cta = 0; cta < options_.ctas; ++cta) {
      for (uint32_t warp = 0; warp < options_.warps_per_cta; ++warp) MakeWarp(number, cta, warp);
    }
    trace::Launch& made = model_.launches.back();
    made.events_kept = model_.events.size() - made.events_kept;
  }

  void MakeWarp(uint32_t launch_row, uint32_t cta, uint32_t index) {
    trace::Warps& warps = model_.warps;
    const uint32_t sm = cta % options_.sms;
    // The slot that has been free for longest, as a full GPU would have it.
    const auto slots = slot_free_.begin() + sm * 64;
    const auto slot = std::min_element(slots, slots + 64);
    uint64_t cycles = *slot + Below(2000);
    const bool begin_missing = OneIn(20);

    warps.launch.push_back(launch_row);
    warps.cta_x.push_back(cta);
    warps.cta_y.push_back(0);
    warps.cta_z.push_back(0);
    warps.index.push_back(OneIn(30) ? kNoRow : index);
    warps.tid_x.push_back(static_cast<uint16_t>(index * 32));
    warps.tid_y.push_back(0);
    warps.tid_z.push_back(0);
    warps.sm.push_back(static_cast<uint16_t>(sm));
    warps.slot.push_back(static_cast<uint8_t>(slot - slots));
    warps.flags.push_back(begin_missing ? trace::kWarpBeginMissing : 0);
    warps.begin_cycles.push_back(cycles);
    warps.first_event.push_back(static_cast<uint32_t>(model_.events.size()));
    warps.first_range.push_back(static_cast<uint32_t>(model_.ranges.size()));
    warps.first_mark.push_back(static_cast<uint32_t>(model_.marks.size()));
    for (uint32_t i = 0; i < options_.events_per_warp; ++i) {
      // Steps of 0 and 1 cycle: several events on one ns, which only their order tells apart.
      cycles += Below(4) == 0 ? Below(2) : Below(200);
      MakeEvent(cycles);
    }
    cycles += Below(100);
    while (!open_.empty() && !OneIn(8)) MakeEnd(cycles, open_.size() - 1);
    for (auto* const all : {&open_, &open_tokens_, &open_lane_}) {
      for (const Open& open : *all) {
        model_.ranges.end_cycles[open.range] = cycles;
        model_.ranges.flags[open.range] |= trace::kRangeUnclosed;
      }
      all->clear();
    }
    outs_.clear();

    const auto row = static_cast<uint32_t>(warps.launch.size() - 1);
    warps.end_cycles.push_back(cycles);
    warps.begin_ns.push_back(model_.NsOfWarp(row, warps.begin_cycles[row]));
    warps.end_ns.push_back(model_.NsOfWarp(row, cycles));
    warps.event_count.push_back(static_cast<uint32_t>(model_.events.size()) -
                                warps.first_event[row]);
    warps.range_count.push_back(static_cast<uint32_t>(model_.ranges.size()) -
                                warps.first_range[row]);
    warps.mark_count.push_back(static_cast<uint32_t>(model_.marks.size()) - warps.first_mark[row]);
    *slot = cycles;
    trace::Launch& launch = model_.launches[launch_row];
    launch.first_ns = std::min(launch.first_ns, warps.begin_ns[row]);
    launch.last_ns = std::max(launch.last_ns, warps.end_ns[row]);
  }

  uint32_t Record(uint32_t declaration, uint64_t cycles) {
    trace::Events& events = model_.events;
    events.warp.push_back(static_cast<uint32_t>(model_.warps.launch.size() - 1));
    events.declaration.push_back(declaration);
    events.cycles.push_back(cycles);
    const trace::Declaration& declared = model_.declarations[declaration];
    events.payload.push_back(Payload(declared.payload));
    const auto row = static_cast<uint32_t>(events.size() - 1);
    for (size_t i = 0; i < declared.more.size(); ++i) {
      if (OneIn(10)) continue;  // its record is lost
      model_.values.event.push_back(row);
      model_.values.index.push_back(static_cast<uint8_t>(i));
      model_.values.value.push_back(Payload(declared.more[i].type));
    }
    return row;
  }

  uint64_t Payload(PayloadType type) {
    switch (type) {
      case PayloadType::kF32:
        return std::bit_cast<uint32_t>(static_cast<float>(Below(1000)) / 8 - 60);
      case PayloadType::kF64:
        return std::bit_cast<uint64_t>(static_cast<double>(Below(1000)) / 8 - 60);
      case PayloadType::kU64:
      case PayloadType::kS64:
        return random_() << 32 | random_();
      case PayloadType::kU32:
        return Below(300);
      default:
        return random_();  // also what stands where nobody declared a payload
    }
  }

  void MakeEvent(uint64_t cycles) {
    if (OneIn(6)) return MakeTokenEvent(cycles);
    if (OneIn(8)) return MakeRowEvent(cycles);
    switch (Below(4)) {
      case 0: {
        if (OneIn(5)) return MakeFlowEvent(cycles);
        const bool unknown = OneIn(50);
        model_.marks.event.push_back(Record(unknown ? unknown_ : Below(7), cycles));
        return;
      }
      case 1:
        if (open_.size() >= 5) return;
        MakeBegin(cycles);
        return;
      default:
        if (open_.empty()) {
          if (!OneIn(10)) return MakeBegin(cycles);
          model_.unmatched_ends.push_back(Record(Below(2) == 0 ? 7 : first_scoped_ + 1, cycles));
        } else {
          // Not the innermost: only scoped ranges can be closed out of order, and only by name.
          size_t at = open_.size() - 1;
          if (OneIn(6)) {
            const uint32_t wanted = Below(static_cast<uint32_t>(open_.size()));
            if (open_[wanted].scoped) at = Innermost(open_[wanted].declaration);
          }
          MakeEnd(cycles, at);
        }
    }
  }

  void MakeTokenEvent(uint64_t cycles) {
    trace::Ranges& ranges = model_.ranges;
    const auto count = static_cast<uint32_t>(open_tokens_.size());
    if (count != 0 && Below(5) < count) {
      const auto at = open_tokens_.begin() + Below(count);
      ranges.end_event[at->range] = Record(at->declaration + 1, cycles);
      ranges.end_cycles[at->range] = cycles;
      open_tokens_.erase(at);
      return;
    }
    const uint32_t declaration = first_token_ + 2 * Below(2);
    uint16_t depth = 0;
    const auto is_taken = [&](const Open& open) {
      return open.declaration == declaration && ranges.depth[open.range] == depth;
    };
    while (std::ranges::any_of(open_tokens_, is_taken)) ++depth;
    open_tokens_.push_back(
        {AddRange(declaration, cycles, depth, trace::kRangeToken), declaration, false});
  }

  void MakeRowEvent(uint64_t cycles) {
    if (Below(2) == 0) {
      model_.marks.event.push_back(Record(many_, cycles));
    } else if (open_lane_.empty()) {
      open_lane_.push_back({AddRange(lane_, cycles, 0, 0), lane_, true});
    } else {
      const uint32_t range = open_lane_.back().range;
      model_.ranges.end_event[range] = Record(lane_ + 1, cycles);
      model_.ranges.end_cycles[range] = cycles;
      open_lane_.clear();
    }
  }

  void MakeFlowEvent(uint64_t cycles) {
    const bool out = Below(2) == 0;
    const uint32_t event = Record(out ? flow_out_ : flow_out_ + 1, cycles);
    model_.marks.event.push_back(event);
    if (out) {
      outs_.push_back(event);
    } else if (!outs_.empty()) {
      model_.flows.from.push_back(outs_[Below(static_cast<uint32_t>(outs_.size()))]);
      model_.flows.to.push_back(event);
    }
  }

  size_t Innermost(uint32_t declaration) const {
    size_t at = open_.size() - 1;
    while (open_[at].declaration != declaration) --at;
    return at;
  }

  void MakeBegin(uint64_t cycles) {
    const bool scoped = Below(2) == 0;
    const uint32_t declaration = scoped ? first_scoped_ + 2 * Below(2) : first_push_ + Below(2);
    const uint16_t depth =
        open_.empty() ? 0 : static_cast<uint16_t>(model_.ranges.depth[open_.back().range] + 1);
    open_.push_back({AddRange(declaration, cycles, depth, 0), declaration, scoped});
  }

  uint32_t AddRange(uint32_t declaration, uint64_t cycles, uint16_t depth, uint8_t flags) {
    trace::Ranges& ranges = model_.ranges;
    const uint32_t event = Record(declaration, cycles);
    ranges.warp.push_back(model_.events.warp[event]);
    ranges.declaration.push_back(declaration);
    ranges.begin_cycles.push_back(cycles);
    ranges.end_cycles.push_back(0);
    ranges.payload.push_back(model_.events.payload[event]);
    ranges.depth.push_back(depth);
    ranges.flags.push_back(flags);
    ranges.begin_event.push_back(event);
    ranges.end_event.push_back(kNoRow);
    return static_cast<uint32_t>(ranges.size() - 1);
  }

  void MakeEnd(uint64_t cycles, size_t at) {
    trace::Ranges& ranges = model_.ranges;
    const Open open = open_[at];
    ranges.end_event[open.range] = Record(open.scoped ? open.declaration + 1 : 7, cycles);
    ranges.end_cycles[open.range] = cycles;
    if (at + 1 < open_.size()) {
      for (size_t i = at; i < open_.size(); ++i) {
        ranges.flags[open_[i].range] |= trace::kRangeCrossed;
      }
    }
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(at));
  }

  SyntheticOptions options_;
  std::mt19937 random_;
  trace::Model model_;
  uint32_t first_push_ = 0, first_scoped_ = 0, first_token_ = 0, flow_out_ = 0, unknown_ = 0;
  uint32_t many_ = 0, lane_ = 0;
  std::vector<uint64_t> slot_free_;
  std::vector<Open> open_;  // innermost last
  std::vector<Open> open_tokens_;
  std::vector<Open> open_lane_;
  std::vector<uint32_t> outs_;  // of the warp
};

}  // namespace

trace::Model MakeSyntheticModel(const SyntheticOptions& options) { return Maker(options).Make(); }

}  // namespace iket::exporter
