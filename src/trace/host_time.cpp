#include "trace/host_time.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace iket::trace {
namespace {

bool IsKnown(const Launch& launch) { return launch.host_ns != 0 && launch.warps_begun != 0; }

// A software device's time is a model's and goes at a pace of its own. What can be kept is the
// order: a mark stands between the launches that it was set between.
class ModelTime {
 public:
  explicit ModelTime(const Model& model) {
    for (const Launch& launch : model.launches) {
      if (!IsKnown(launch)) continue;
      launches_.emplace_back(static_cast<double>(launch.host_ns), launch.first_ns);
      end_ns_ = std::max(end_ns_, launch.last_ns);
    }
    std::ranges::sort(launches_);
  }

  double Of(double host_ns) const {
    const auto next = std::ranges::upper_bound(launches_, host_ns, {}, &Launched::first);
    if (next == launches_.begin()) return 0;
    const Launched& before = *std::prev(next);
    const double limit = next == launches_.end() ? end_ns_ : std::max(next->second, before.second);
    return std::min(before.second + (host_ns - before.first), limit);
  }

 private:
  using Launched = std::pair<double, double>;  // when on the host, and when on the trace
  std::vector<Launched> launches_;
  double end_ns_ = 0;
};

}  // namespace

std::optional<double> HostOrigin(const Model& model) {
  std::optional<double> latest;
  for (const Launch& launch : model.launches) {
    if (!IsKnown(launch)) continue;
    const double origin = static_cast<double>(launch.host_ns) - launch.first_ns;
    latest = std::max(latest.value_or(origin), origin);
  }
  return latest;
}

void PlaceHostMarks(const capture::Capture& facts, StringInterner& strings, Model& model) {
  for (const capture::Note& note : facts.notes) {
    if (note.severity != capture::Severity::kMarker) continue;
    model.host_marks.push_back(
        {.host_ns = note.time_ns, .ns = std::nullopt, .text = strings.Intern(note.text)});
  }
  if (model.host_marks.empty()) return;
  std::ranges::stable_sort(model.host_marks, {}, &HostMark::host_ns);
  const std::optional<double> origin = HostOrigin(model);
  if (!origin) return;
  const bool simulated = std::ranges::any_of(model.devices, &Device::simulated);
  const ModelTime model_time(model);
  for (HostMark& mark : model.host_marks) {
    const auto host_ns = static_cast<double>(mark.host_ns);
    mark.ns = simulated ? model_time.Of(host_ns) : host_ns - *origin;
  }
}

}  // namespace iket::trace
