#include "export/trace_json_tables.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>

namespace iket::exporter {
namespace {

using trace::kNoRow;

uint64_t Mixed(uint64_t hash, uint64_t value) {
  return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15u, 29);
}

}  // namespace

TraceJsonTables::TraceJsonTables(const trace::Model& model) : model_(model) {
  OrderWarps();
  FindLocations();
  FindStrings();
}

void TraceJsonTables::OrderWarps() {
  order_.resize(model_.warps.size());
  std::iota(order_.begin(), order_.end(), 0u);
  for (const trace::Launch& launch : model_.launches) {  // by CTA and index already
    std::ranges::stable_sort(std::span(order_).subspan(launch.first_warp, launch.warp_count), {},
                             [&](uint32_t warp) { return model_.warps.sm[warp]; });
  }
}

// A table of open addressing at half load: there may be as many warps as memory holds.
void TraceJsonTables::FindLocations() {
  const trace::Warps& warps = model_.warps;
  const auto same = [&](uint32_t a, uint32_t b) {
    return warps.cta_x[a] == warps.cta_x[b] && warps.cta_y[a] == warps.cta_y[b] &&
           warps.cta_z[a] == warps.cta_z[b] && warps.index[a] == warps.index[b] &&
           warps.sm[a] == warps.sm[b] &&
           model_.launches[warps.launch[a]].device == model_.launches[warps.launch[b]].device;
  };
  Column<uint32_t> slots(std::bit_ceil(2 * warps.size() + 1), kNoRow);
  location_of_warp_.resize(warps.size());
  for (const uint32_t warp : order_) {
    uint64_t hash = Mixed(0, uint64_t{warps.cta_x[warp]} << 32 | warps.index[warp]);
    hash = Mixed(hash, uint64_t{warps.cta_y[warp]} << 32 | uint64_t{warps.cta_z[warp]} << 16 |
                           warps.sm[warp]);
    size_t at = (hash ^ hash >> 32) & (slots.size() - 1);
    while (slots[at] != kNoRow && !same(locations_[slots[at]], warp)) {
      at = (at + 1) & (slots.size() - 1);
    }
    if (slots[at] == kNoRow) {
      slots[at] = static_cast<uint32_t>(locations_.size());
      locations_.push_back(warp);
    }
    location_of_warp_[warp] = slots[at];
  }
}

uint32_t TraceJsonTables::RowOf(trace::StringId string) {
  uint32_t& row = row_of_string_[string];
  if (row == kNoRow) {
    row = static_cast<uint32_t>(strings_.size());
    strings_.push_back(model_.String(string));
  }
  return row;
}

void TraceJsonTables::UseName(uint32_t declaration) {
  uint32_t& row = name_of_declaration_[declaration];
  if (row != kNoRow) return;
  if (model_.declarations[declaration].kind != trace::EventKind::kUnknown) {
    row = RowOf(model_.declarations[declaration].name);
    return;
  }
  row = static_cast<uint32_t>(strings_.size());
  strings_.emplace_back("unknown event");
}

void TraceJsonTables::FindStrings() {
  row_of_string_.resize(model_.strings.size(), kNoRow);
  name_of_declaration_.resize(model_.declarations.size(), kNoRow);
  for (const trace::Launch& launch : model_.launches) {
    for (const uint32_t warp : WarpsOf(launch)) {
      const uint32_t first = model_.warps.first_range[warp];
      for (uint32_t row = first; row < first + model_.warps.range_count[warp]; ++row) {
        UseName(model_.ranges.declaration[row]);
      }
    }
    for (const uint32_t warp : WarpsOf(launch)) {
      const uint32_t first = model_.warps.first_mark[warp];
      for (uint32_t row = first; row < first + model_.warps.mark_count[warp]; ++row) {
        UseName(model_.events.declaration[model_.marks.event[row]]);
      }
    }
  }
  if (model_.values.size() == 0) return;
  for (const trace::Declaration& declaration : model_.declarations) {
    for (const trace::Value& value : declaration.more) RowOf(value.name);
  }
}

}  // namespace iket::exporter
