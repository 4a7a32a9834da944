#include "export/trace_json_tables.h"

#include <bit>
#include <string_view>

namespace iket::exporter {
namespace {

using trace::kNoRow;

uint64_t Mixed(uint64_t hash, uint64_t value) {
  return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15u, 29);
}

}  // namespace

TraceJsonTables::TraceJsonTables(const trace::Model& model) : model_(model) {
  FindLocations();
  FindStrings();
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
  std::vector<uint32_t> slots(std::bit_ceil(2 * warps.size() + 1), kNoRow);
  location_of_warp_.reserve(warps.size());
  for (uint32_t warp = 0; warp < warps.size(); ++warp) {
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
    location_of_warp_.push_back(slots[at]);
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

void TraceJsonTables::FindStrings() {
  std::vector<bool> used(model_.declarations.size());
  for (const uint32_t declaration : model_.ranges.declaration) used[declaration] = true;
  for (const uint32_t event : model_.marks.event) used[model_.events.declaration[event]] = true;
  row_of_string_.resize(model_.strings.size(), kNoRow);
  name_of_declaration_.resize(model_.declarations.size(), kNoRow);
  // What closes a range has values of its own.
  const bool has_values = model_.values.size() != 0;
  for (uint32_t row = 0; row < model_.declarations.size(); ++row) {
    const trace::Declaration& declaration = model_.declarations[row];
    if (has_values) {
      for (const trace::Value& value : declaration.more) RowOf(value.name);
    }
    if (!used[row]) continue;
    if (declaration.kind != trace::EventKind::kUnknown) {
      name_of_declaration_[row] = RowOf(declaration.name);
      continue;
    }
    name_of_declaration_[row] = static_cast<uint32_t>(strings_.size());
    strings_.emplace_back("unknown event");
  }
}

}  // namespace iket::exporter
