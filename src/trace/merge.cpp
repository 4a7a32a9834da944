#include "trace/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "trace/excerpt.h"
#include "trace/uncertainty.h"

namespace iket::trace {
namespace {

// Hosts' times of day that are closer than that are one host's, read twice.
constexpr int64_t kSameBootNs = 1'000'000'000;

template <typename Vector>
void Append(Vector& to, Vector from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}
// Row numbers, moved to behind those that are there.
void AppendRows(Column<uint32_t>& to, std::span<const uint32_t> from, size_t before) {
  for (const uint32_t row : from) {
    to.push_back(row == kNoRow ? kNoRow : row + static_cast<uint32_t>(before));
  }
}

class Merger {
 public:
  explicit Merger(Model first) : all_(std::move(first)) { NameDevices(all_, 0); }

  // `moved` takes times of `part` to the axis of all.
  void Add(Model part, const std::function<double(double)>& moved) {
    for (SmClock& clock : part.clocks) clock.Move(moved);
    MoveStrings(part);
    NameDevices(part, all_.strings.size());
    AddWarps(part);
    AddEvents(part);
    for (Launch launch : part.launches) {
      launch.kernel = Behind(launch.kernel, all_.kernels.size());
      launch.device += static_cast<uint32_t>(all_.devices.size());
      launch.first_warp += static_cast<uint32_t>(warps_before_);
      all_.launches.push_back(launch);
    }
    for (Device& device : part.devices) {
      device.first_clock += static_cast<uint32_t>(all_.clocks.size());
    }
    for (HostMark& mark : part.host_marks) {
      if (mark.ns) mark.ns = moved(*mark.ns);
    }
    if (part.read_ns) {
      all_.read_ns = std::max(all_.read_ns.value_or(moved(*part.read_ns)), moved(*part.read_ns));
    }
    for (const CounterInfo& counter : AllCounters()) {
      all_.counters.*counter.member += part.counters.*counter.member;
    }
    AddRings(std::move(part.rings));
    Append(all_.kernels, std::move(part.kernels));
    Append(all_.declarations, std::move(part.declarations));
    Append(all_.edges, std::move(part.edges));
    Append(all_.clocks, std::move(part.clocks));
    Append(all_.devices, std::move(part.devices));
    Append(all_.host_marks, std::move(part.host_marks));
    Append(all_.strings, std::move(part.strings));
    Join(all_.command, part.command, "; ");
    Join(all_.damage, part.damage, "; ");
    if (part.host != 0 && all_.String(part.host) != all_.String(all_.host)) {
      Join(all_.host, part.host, ", ");
    }
  }

  // `error_ns`: what the others' times may be wrong by on the host's clock.
  Model Take(double error_ns) && {
    TimesOfClocks();
    StartAtFirstMoment();
    for (HostClock::Knot& knot : all_.host_clock->knots) knot.error_ns += error_ns;
    std::ranges::stable_sort(all_.host_marks, {}, &HostMark::host_ns);
    SortLaunches();
    return Rearranged(all_);
  }

 private:
  static uint32_t Behind(uint32_t row, size_t before) {
    return row == kNoRow ? kNoRow : row + static_cast<uint32_t>(before);
  }

  void Join(StringId& all, StringId one, std::string_view between) {
    if (one == 0) return;
    const std::string text =
        all == 0 ? all_.String(one)
                 : fmt::format("{}{}{}", all_.String(all), between, all_.String(one));
    all = static_cast<StringId>(all_.strings.size());
    all_.strings.push_back(text);
  }

  // Says whose they are, by strings of `model` that stand behind `before` others.
  static void NameDevices(Model& model, size_t before) {
    for (Device& device : model.devices) {
      const std::string name = model.strings[device.name - (device.name == 0 ? 0 : before)];
      device.name = static_cast<StringId>(model.strings.size() + before);
      model.strings.push_back(
          fmt::format("{} {} of process {}", name, device.index, model.process_id));
    }
  }

  // Every number of a string, but "" which all have.
  void MoveStrings(Model& part) const {
    const auto move = [before = all_.strings.size()](StringId& id) {
      if (id != 0) id += static_cast<StringId>(before);
    };
    for (Device& device : part.devices) move(device.name), move(device.uuid);
    for (Kernel& kernel : part.kernels) {
      move(kernel.mangled), move(kernel.demangled), move(kernel.short_name), move(kernel.refusal);
    }
    for (Declaration& row : part.declarations) {
      for (StringId* id :
           {&row.name, &row.payload_name, &row.category, &row.group, &row.lane, &row.file}) {
        move(*id);
      }
      for (Value& value : row.more) move(value.name);
    }
    for (DeclaredEdge& edge : part.edges) {
      for (StringId* id : {&edge.dag, &edge.from, &edge.to, &edge.label, &edge.via}) move(*id);
    }
    for (HostMark& mark : part.host_marks) move(mark.text);
    move(part.command), move(part.host), move(part.damage);
  }

  void AddWarps(Model& part) {
    Warps& to = all_.warps;
    Warps& from = part.warps;
    warps_before_ = to.size();
    AppendRows(to.launch, from.launch, all_.launches.size());
    AppendRows(to.first_event, from.first_event, all_.events.size());
    AppendRows(to.first_range, from.first_range, all_.ranges.size());
    AppendRows(to.first_mark, from.first_mark, all_.marks.size());
    const auto append = [&](auto member) { Append(to.*member, std::move(from.*member)); };
    append(&Warps::cta_x), append(&Warps::cta_y), append(&Warps::cta_z), append(&Warps::index);
    append(&Warps::tid_x), append(&Warps::tid_y), append(&Warps::tid_z), append(&Warps::sm);
    append(&Warps::slot), append(&Warps::flags);
    append(&Warps::begin_cycles), append(&Warps::end_cycles);
    append(&Warps::begin_ns), append(&Warps::end_ns);
    append(&Warps::event_count), append(&Warps::range_count), append(&Warps::mark_count);
  }

  void AddEvents(Model& part) {
    const size_t events = all_.events.size(), declarations = all_.declarations.size();
    AppendRows(all_.ranges.warp, part.ranges.warp, warps_before_);
    AppendRows(all_.ranges.declaration, part.ranges.declaration, declarations);
    AppendRows(all_.ranges.begin_event, part.ranges.begin_event, events);
    AppendRows(all_.ranges.end_event, part.ranges.end_event, events);
    const auto append = [](auto& to, auto& from) { Append(to, std::move(from)); };
    append(all_.ranges.begin_cycles, part.ranges.begin_cycles);
    append(all_.ranges.end_cycles, part.ranges.end_cycles);
    append(all_.ranges.payload, part.ranges.payload);
    append(all_.ranges.depth, part.ranges.depth);
    append(all_.ranges.flags, part.ranges.flags);
    AppendRows(all_.marks.event, part.marks.event, events);
    AppendRows(all_.flows.from, part.flows.from, events);
    AppendRows(all_.flows.to, part.flows.to, events);
    AppendRows(all_.holes, part.holes, events);
    AppendRows(all_.unmatched_ends, part.unmatched_ends, events);
    AppendRows(all_.values.event, part.values.event, events);
    append(all_.values.index, part.values.index);
    append(all_.values.value, part.values.value);
    AppendRows(all_.events.warp, part.events.warp, warps_before_);
    AppendRows(all_.events.declaration, part.events.declaration, declarations);
    append(all_.events.cycles, part.events.cycles);
    append(all_.events.payload, part.events.payload);
  }

  void AddRings(Rings&& from) {
    Rings& to = all_.rings;
    const auto append = [&](auto member) { Append(to.*member, std::move(from.*member)); };
    append(&Rings::context), append(&Rings::sm), append(&Rings::slot), append(&Rings::suspect);
    append(&Rings::written), append(&Rings::kept), append(&Rings::lost);
    append(&Rings::lost_lower_bound);
  }

  // Whatever is said in ns, from what is said in cycles.
  void TimesOfClocks() {
    for (Launch& launch : all_.launches) {
      for (uint32_t i = 0; i < launch.warp_count; ++i) {
        const uint32_t warp = launch.first_warp + i;
        double& begin = all_.warps.begin_ns[warp];
        double& end = all_.warps.end_ns[warp];
        begin = all_.NsOfWarp(warp, all_.warps.begin_cycles[warp]);
        end = all_.NsOfWarp(warp, all_.warps.end_cycles[warp]);
        launch.first_ns = i == 0 ? begin : std::min(launch.first_ns, begin);
        launch.last_ns = i == 0 ? end : std::max(launch.last_ns, end);
      }
    }
  }

  void StartAtFirstMoment() {
    double first = 0;
    for (const Launch& launch : all_.launches) first = std::min(first, launch.first_ns);
    const double shift = -std::floor(first);
    if (shift == 0) return;
    for (SmClock& clock : all_.clocks) clock.Move([shift](double ns) { return ns + shift; });
    for (double& ns : all_.warps.begin_ns) ns += shift;
    for (double& ns : all_.warps.end_ns) ns += shift;
    for (Launch& launch : all_.launches) launch.first_ns += shift, launch.last_ns += shift;
    for (HostMark& mark : all_.host_marks) {
      if (mark.ns) *mark.ns += shift;
    }
    for (HostClock::Knot& knot : all_.host_clock->knots) knot.ns += shift;
    if (all_.read_ns) *all_.read_ns += shift;
    all_.origin_ns -= std::min(static_cast<uint64_t>(shift), all_.origin_ns);
  }

  void SortLaunches() {
    std::ranges::stable_sort(all_.launches, {}, &Launch::first_ns);
    for (uint32_t row = 0; row < all_.launches.size(); ++row) {
      const Launch& launch = all_.launches[row];
      for (uint32_t i = 0; i < launch.warp_count; ++i) {
        all_.warps.launch[launch.first_warp + i] = row;
      }
    }
  }

  Model all_;
  size_t warps_before_ = 0;  // of all, when the part at hand came
};

// What takes the host's time of one capture to that of another.
Result<double> HostOffset(const Named& one, const Named& first) {
  const HostClock& from = *one.model.host_clock;
  const HostClock& to = *first.model.host_clock;
  const bool same_name = one.model.String(one.model.host) == first.model.String(first.model.host);
  if (!from.realtime_ahead_ns || !to.realtime_ahead_ns) {
    if (same_name) return 0.0;
    return Fail(ErrorKind::kUsage,
                "{} and {} are of different hosts, and one of them does not say what time of day "
                "it was: they have no axis in common",
                first.name, one.name);
  }
  const int64_t difference = *from.realtime_ahead_ns - *to.realtime_ahead_ns;
  // A host's MONOTONIC goes on while its time of day is set; of another boot it is another clock.
  if (same_name && std::abs(difference) < kSameBootNs) return 0.0;
  return static_cast<double>(difference);
}

Result<void> CheckRoom(const std::vector<Named>& captures) {
  for (const Named& capture : captures) {
    if (!capture.model.host_clock) {
      return Fail(ErrorKind::kUsage,
                  "{} cannot be put on one axis with others: nothing joins its GPU's clock to the "
                  "host's (a software device's time is a model's; else no launch is in its log)",
                  capture.name);
    }
  }
  const uint64_t events = std::accumulate(
      captures.begin(), captures.end(), uint64_t{0},
      [](uint64_t sum, const Named& capture) { return sum + capture.model.events.size(); });
  if (events >= kNoRow) {
    return Fail(ErrorKind::kUsage,
                "the captures hold {} events together, more than {}: choose parts", events, kNoRow);
  }
  return {};
}

}  // namespace

Result<Model> Merge(std::vector<Named> captures) {
  if (auto room = CheckRoom(captures); !room) return tl::unexpected(room.error());
  if (captures.size() == 1) return std::move(captures.front().model);
  std::vector<double> offsets;
  double error_ns = 0;
  for (const Named& capture : std::span(captures).subspan(1)) {
    const auto offset = HostOffset(capture, captures.front());
    if (!offset) return tl::unexpected(offset.error());
    offsets.push_back(*offset);
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    error_ns = std::max(error_ns, UncertaintyOf(capture.model).host_ns.value_or(kUnknown));
  }
  const HostClock axis = *captures.front().model.host_clock;
  Merger merger(std::move(captures.front().model));
  for (size_t i = 1; i < captures.size(); ++i) {
    const HostClock own = *captures[i].model.host_clock;
    merger.Add(std::move(captures[i].model), [&, offset = offsets[i - 1]](double ns) {
      return axis.FromHost(own.ToHost(ns) + offset);
    });
  }
  return std::move(merger).Take(error_ns);
}

}  // namespace iket::trace
