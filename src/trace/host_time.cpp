#include "trace/host_time.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
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

// Joined where a launch began soonest after its call. The host's clock is early at most by what
// passed between the last end and the reading; nothing is known if there was none.
std::optional<HostClock> ByLaunches(const Model& model, int64_t read_host_ns) {
  const Launch* soonest = nullptr;
  std::optional<double> last_end;
  const auto origin_of = [](const Launch& launch) {
    return static_cast<double>(launch.host_ns) - launch.first_ns;
  };
  for (const Launch& launch : model.launches) {
    // What had ended when the rings were read. A launch of which some warp still ran had not.
    if (launch.warps_ended != 0 && launch.warps_ended == launch.warp_count) {
      last_end = std::max(last_end.value_or(launch.last_ns), launch.last_ns);
    }
    if (!IsKnown(launch)) continue;
    if (soonest == nullptr || origin_of(launch) > origin_of(*soonest)) soonest = &launch;
  }
  if (soonest == nullptr) return std::nullopt;
  HostClock clock{.knots = {{.ns = soonest->first_ns,
                             .host_ns = static_cast<double>(soonest->host_ns),
                             .error_ns = std::numeric_limits<double>::infinity()}}};
  if (read_host_ns != 0 && last_end) {
    const double read_ns = clock.FromHost(static_cast<double>(read_host_ns));
    clock.knots.front().error_ns = std::max(0.0, read_ns - *last_end);
  }
  return clock;
}

}  // namespace

std::vector<capture::ClockExchange> ExchangesOf(const capture::Capture& facts, uint32_t device) {
  std::vector<capture::ClockExchange> exchanges;
  std::ranges::copy_if(facts.exchanges, std::back_inserter(exchanges), [&](const auto& exchange) {
    const capture::Context* const context = facts.FindContext(exchange.context);
    return context != nullptr && context->device == device;
  });
  return exchanges;
}

void JoinHost(const capture::Capture& facts, int64_t read_host_ns, Model& model) {
  const bool simulated = std::ranges::any_of(model.devices, &Device::simulated);
  std::optional<HostClock> clock;
  for (const Device& device : model.devices) {
    if (simulated || clock) break;
    clock = HostClockOf(ExchangesOf(facts, device.index), model.origin_ns);
  }
  if (!clock) clock = ByLaunches(model, read_host_ns);
  if (!clock) return;
  if (read_host_ns != 0) model.read_ns = clock->FromHost(static_cast<double>(read_host_ns));
  if (!simulated) model.host_clock = std::move(clock);
}

void PlaceHostMarks(const capture::Capture& facts, StringInterner& strings, Model& model) {
  for (const capture::Note& note : facts.notes) {
    if (note.severity != capture::Severity::kMarker) continue;
    model.host_marks.push_back(
        {.host_ns = note.time_ns, .ns = std::nullopt, .text = strings.Intern(note.text)});
  }
  if (model.host_marks.empty()) return;
  std::ranges::stable_sort(model.host_marks, {}, &HostMark::host_ns);
  const bool simulated = std::ranges::any_of(model.devices, &Device::simulated);
  if (simulated ? std::ranges::none_of(model.launches, IsKnown) : !model.host_clock) return;
  const ModelTime model_time(model);
  for (HostMark& mark : model.host_marks) {
    const auto host_ns = static_cast<double>(mark.host_ns);
    mark.ns = simulated ? model_time.Of(host_ns) : model.host_clock->FromHost(host_ns);
  }
}

}  // namespace iket::trace
