// trace_json_tables.h: the order of rows in a .trace.json, and the tables that they refer to:
// locations and strings.
//
// As run-iket has them: warps stand by launch, SM, CTA and index; a location, a warp of a CTA on an
// SM, stands once, however many launches had it; of the names those that are used, as they are
// first: by ranges, then by markers. Private to the room.
//
// Cost: a sort of the warps by SM; 12 bytes a warp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trace/model.h"

namespace iket::exporter {

class TraceJsonTables {
 public:
  explicit TraceJsonTables(const trace::Model& model);

  // Rows of the launch's warps, in the order in which they are written.
  std::span<const uint32_t> WarpsOf(const trace::Launch& launch) const {
    return std::span(order_).subspan(launch.first_warp, launch.warp_count);
  }

  uint32_t LocationOf(uint32_t warp) const { return location_of_warp_[warp]; }
  // A warp for each location.
  const Column<uint32_t>& locations() const { return locations_; }

  // Of the declaration of a mark, or of what opens a range.
  uint32_t NameOf(uint32_t declaration) const { return name_of_declaration_[declaration]; }
  // Of one of its further values.
  uint32_t NameOfValue(uint32_t declaration, size_t value) const {
    return row_of_string_[model_.declarations[declaration].more[value].name];
  }
  const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  void OrderWarps();
  void FindLocations();
  void FindStrings();
  void UseName(uint32_t declaration);
  uint32_t RowOf(trace::StringId string);

  const trace::Model& model_;
  Column<uint32_t> order_;  // rows of warps, each launch's in its place
  Column<uint32_t> location_of_warp_;
  Column<uint32_t> locations_;
  std::vector<uint32_t> name_of_declaration_;
  std::vector<uint32_t> row_of_string_;  // by StringId
  std::vector<std::string_view> strings_;
};

}  // namespace iket::exporter
