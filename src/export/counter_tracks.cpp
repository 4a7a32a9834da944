#include "export/counter_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "export/edges.h"

namespace iket::exporter {
namespace {

constexpr uint64_t kLeastPieceNs = 1000;
constexpr size_t kMostPiecesOfALaunch = 256;

std::string OfDevice(const trace::Model& model, uint32_t device, std::string name) {
  if (model.devices.size() > 1) name += fmt::format(", GPU {}", device);
  if (model.devices[device].simulated) name += " (software device)";
  return name;
}

uint64_t EndNs(const trace::Model& model, double begin_ns, double end_ns) {
  return std::max(GlobalNs(model, begin_ns), GlobalNs(model, end_ns));
}

// The times in which something ran, apart from each other, ascending.
Column<std::pair<uint64_t, uint64_t>> BusyTimes(const trace::Model& model, uint32_t device) {
  Column<std::pair<uint64_t, uint64_t>> busy;
  for (const trace::Launch& launch : model.launches) {  // by their begins
    if (launch.device != device || launch.warp_count == 0) continue;
    const uint64_t begin = GlobalNs(model, launch.first_ns);
    const uint64_t end = EndNs(model, launch.first_ns, launch.last_ns) + 1;
    if (!busy.empty() && begin <= busy.back().second) {
      busy.back().second = std::max(busy.back().second, end);
    } else {
      busy.emplace_back(begin, end);
    }
  }
  return busy;
}

}  // namespace

CounterCurve ActiveWarps(const trace::Model& model, uint32_t device) {
  CounterCurve curve{.name = OfDevice(model, device, "active warps"),
                     .unit = "warps",
                     .description = {},
                     .points = {}};
  Column<std::pair<uint64_t, int32_t>> changes;
  const trace::Warps& warps = model.warps;
  for (uint32_t i = 0; i < warps.size(); ++i) {
    if (model.launches[warps.launch[i]].device != device) continue;
    changes.emplace_back(GlobalNs(model, warps.begin_ns[i]), 1);
    changes.emplace_back(EndNs(model, warps.begin_ns[i], warps.end_ns[i]), -1);
  }
  if (changes.empty()) return curve;
  // Those that end at a moment before those that begin then.
  std::ranges::sort(changes);
  const uint64_t first = changes.front().first, last = changes.back().first;
  uint64_t moments = 1;
  for (size_t i = 1; i < changes.size(); ++i) moments += changes[i].first != changes[i - 1].first;
  const uint64_t width = moments <= kMostPoints ? 1 : (last - first) / (kMostPoints - 1) + 1;
  curve.description = width == 1 ? "Warps of kernels with marks that had begun and not ended."
                                 : fmt::format(
                                       "The most warps of kernels with marks that ran at a "
                                       "time, in each {} ns.",
                                       width);
  // A point at a moment that has one takes its place.
  const auto put = [&curve](uint64_t ns, int64_t warps_active) {
    Column<CounterPoint>& points = curve.points;
    if (!points.empty() && points.back().ns == ns) points.pop_back();
    const auto value = static_cast<double>(warps_active);
    if (points.empty() || points.back().value != value) points.push_back({ns, value});
  };
  int64_t level = 0;
  for (size_t i = 0; i < changes.size();) {
    const uint64_t piece = (changes[i].first - first) / width;
    int64_t most = level;
    for (; i < changes.size() && (changes[i].first - first) / width == piece; ++i) {
      level += changes[i].second;
      most = std::max(most, level);
    }
    if (width == 1) most = level;
    put(first + piece * width, most);
    put(first + (piece + 1) * width, level);
  }
  return curve;
}

CounterCurve SmFrequency(const trace::Model& model, uint32_t device) {
  CounterCurve curve{
      .name = OfDevice(model, device, "SM clock"), .unit = "GHz", .description = {}, .points = {}};
  const trace::Device& of = model.devices[device];
  uint32_t best = trace::kNoRow;
  for (uint32_t sm = 0; sm < of.clock_count; ++sm) {
    const trace::SmClock& clock = model.clocks[of.first_clock + sm];
    if (clock.knots.empty()) continue;
    if (best == trace::kNoRow || clock.pairs > model.clocks[of.first_clock + best].pairs) best = sm;
  }
  if (best == trace::kNoRow) return curve;
  curve.description = fmt::format(
      "The frequency of SM {}, by its cycles against the GPU's timer: a mean over each stretch in "
      "which it seemed to stand still.",
      best);
  for (const trace::SmClock::Knot& knot : model.clocks[of.first_clock + best].knots) {
    if (!(knot.slope > 0) || curve.points.size() == kMostPoints) continue;
    const uint64_t ns = GlobalNs(model, std::max(0.0, knot.ns));
    if (!curve.points.empty() && ns <= curve.points.back().ns) continue;
    curve.points.push_back({ns, 1 / knot.slope});
  }
  return curve;
}

EventRate::EventRate(const trace::Model& model, uint32_t device)
    : name_(OfDevice(model, device, "events")) {
  const auto busy = BusyTimes(model, device);
  const size_t share = busy.empty() ? 1 : kMostPoints / 2 / busy.size();
  const size_t most = std::clamp<size_t>(share, 1, kMostPiecesOfALaunch);
  for (const auto& [begin, end] : busy) {
    const uint64_t width = std::max(kLeastPieceNs, (end - begin + most - 1) / most);
    // A silence is a piece, too: what is between its end and the next begin.
    for (uint64_t at = begin; at < end; at += std::min(width, end - at)) starts_.push_back(at);
    starts_.push_back(end);
  }
  counts_.assign(starts_.empty() ? 0 : starts_.size() - 1, 0);
}

CounterCurve EventRate::Curve() const {
  CounterCurve curve{.name = name_,
                     .unit = "1/us",
                     .description = "Events recorded a microsecond, a mean over each step.",
                     .points = {}};
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double us = static_cast<double>(starts_[i + 1] - starts_[i]) / 1000;
    const double rate = us > 0 ? static_cast<double>(counts_[i]) / us : 0;
    if (!curve.points.empty() && curve.points.back().value == rate) continue;
    curve.points.push_back({starts_[i], rate});
  }
  if (!curve.points.empty() && curve.points.back().value != 0) {
    curve.points.push_back({starts_.back(), 0});
  }
  return curve;
}

}  // namespace iket::exporter
