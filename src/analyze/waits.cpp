#include "analyze/waits.h"

#include <algorithm>
#include <string_view>

namespace iket::analyze {
namespace {

using trace::EventKind;
using trace::kNoRow;
using trace::PayloadType;

// Of "wait full" after "wait": "full". Nothing if the name does not begin so.
std::optional<std::string_view> Behind(std::string_view name, std::string_view word) {
  if (!name.starts_with(word) || name.size() < word.size() + 2) return std::nullopt;
  if (std::string_view(" _.:/").find(name[word.size()]) == std::string_view::npos) {
    return std::nullopt;
  }
  return name.substr(word.size() + 1);
}

std::optional<std::string_view> ArrivalOf(std::string_view name) {
  for (const std::string_view word : {"arrive", "release", "signal"}) {
    if (const auto what = Behind(name, word)) return what;
  }
  return std::nullopt;
}

// A warp says it here; the end of a range says nothing new.
bool Says(EventKind kind) { return kind == EventKind::kMark || trace::Opens(kind); }

bool HasPayload(const trace::Declaration& declaration) {
  return declaration.payload != PayloadType::kNone;
}

}  // namespace

Waits::Waits(const trace::Model& model, uint32_t launch)
    : model_(model),
      launch_(launch),
      partners_(model.declarations.size()),
      arrives_(model.declarations.size(), false) {
  for (uint32_t wait = 0; wait < partners_.size(); ++wait) {
    if (!Says(model.declarations[wait].kind)) continue;
    const auto awaited = Behind(model.DeclarationName(wait), "wait");
    for (uint32_t row = 0; awaited && row < partners_.size(); ++row) {
      if (!Says(model.declarations[row].kind)) continue;
      if (ArrivalOf(model.DeclarationName(row)) != awaited) continue;
      // Who was not to be recorded may have come all the same.
      if (model.declarations[row].left_out) {
        partners_[wait].clear();
        break;
      }
      partners_[wait].push_back(row);
      arrives_[row] = true;
    }
  }
}

// The declaration of what the warp waits in, kNoRow if it does not.
uint32_t Waits::WaitOf(uint32_t warp, uint64_t* payload) const {
  const trace::Ranges& ranges = model_.ranges;
  const uint32_t first = model_.warps.first_range[warp];
  uint32_t innermost = kNoRow;
  for (uint32_t i = first; i < first + model_.warps.range_count[warp]; ++i) {
    const bool open =
        (ranges.flags[i] & (trace::kRangeUnclosed | trace::kRangeCut)) == trace::kRangeUnclosed;
    if (open) innermost = i;
  }
  const auto is_wait = [&](uint32_t declaration) { return !partners_[declaration].empty(); };
  if (innermost != kNoRow && is_wait(ranges.declaration[innermost])) {
    *payload = ranges.payload[innermost];
    return ranges.declaration[innermost];
  }
  if (model_.warps.event_count[warp] == 0) return kNoRow;
  const uint32_t last = model_.warps.first_event[warp] + model_.warps.event_count[warp] - 1;
  const uint32_t declaration = model_.events.declaration[last];
  *payload = model_.events.payload[last];
  const bool is_mark = model_.declarations[declaration].kind == EventKind::kMark;
  return is_mark && is_wait(declaration) ? declaration : kNoRow;
}

void Waits::Count() {
  counted_ = true;
  const trace::Launch& launch = model_.launches[launch_];
  constexpr uint8_t kLost =
      trace::kWarpBeginMissing | trace::kWarpHoled | trace::kWarpSuspect | trace::kWarpOrphan;
  for (uint32_t warp = launch.first_warp; warp < launch.first_warp + launch.warp_count; ++warp) {
    const Cluster cluster = model_.ClusterOf(warp);
    lossy_[cluster] |= (model_.warps.flags[warp] & kLost) != 0;
    const uint32_t first = model_.warps.first_event[warp];
    for (uint32_t i = first; i < first + model_.warps.event_count[warp]; ++i) {
      const uint32_t declaration = model_.events.declaration[i];
      if (!arrives_[declaration]) continue;
      ++arrivals_[{cluster, declaration, model_.events.payload[i]}];
    }
  }
}

std::optional<Wait> Waits::Of(uint32_t warp) {
  uint64_t payload = 0;
  Wait wait{.declaration = WaitOf(warp, &payload)};
  if (wait.declaration == kNoRow) return std::nullopt;
  if (!counted_) Count();
  wait.partners = partners_[wait.declaration];
  const trace::Declaration& declared = model_.declarations[wait.declaration];
  bool by_payload = HasPayload(declared);
  for (uint32_t row : wait.partners) by_payload &= HasPayload(model_.declarations[row]);

  const uint32_t first = model_.warps.first_event[warp];
  for (uint32_t i = first; i < first + model_.warps.event_count[warp]; ++i) {
    if (model_.events.declaration[i] != wait.declaration) continue;
    if (!by_payload || model_.events.payload[i] == payload) ++wait.times;
  }
  const Cluster cluster = model_.ClusterOf(warp);
  for (uint32_t row : wait.partners) {
    for (auto entry = arrivals_.lower_bound({cluster, row, by_payload ? payload : 0});
         entry != arrivals_.end() && std::get<0>(entry->first) == cluster &&
         std::get<1>(entry->first) == row && (!by_payload || std::get<2>(entry->first) == payload);
         ++entry) {
      wait.arrivals += entry->second;
    }
  }
  // Of launches whose first warps are gone altogether nothing is certain either.
  wait.lossy = lossy_[cluster] || model_.launches[launch_].lost_at_most != 0;
  return wait;
}

}  // namespace iket::analyze
