// trace_json_tables.h: the tables of a .trace.json that its rows refer to: locations and strings.
//
// As run-iket has them: a location, a warp of a CTA on an SM, stands once, however many launches
// had it; of the names those that are used. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::exporter {

class TraceJsonTables {
 public:
  explicit TraceJsonTables(const trace::Model& model);

  uint32_t LocationOf(uint32_t warp) const { return location_of_warp_[warp]; }
  // A warp for each location.
  const std::vector<uint32_t>& locations() const { return locations_; }

  // Of the declaration of a mark, or of what opens a range.
  uint32_t NameOf(uint32_t declaration) const { return name_of_declaration_[declaration]; }
  // Of one of its further values.
  uint32_t NameOfValue(uint32_t declaration, size_t value) const {
    return row_of_string_[model_.declarations[declaration].more[value].name];
  }
  const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  void FindLocations();
  void FindStrings();
  uint32_t RowOf(trace::StringId string);

  const trace::Model& model_;
  std::vector<uint32_t> location_of_warp_;
  std::vector<uint32_t> locations_;
  std::vector<uint32_t> name_of_declaration_;
  std::vector<uint32_t> row_of_string_;  // by StringId
  std::vector<std::string_view> strings_;
};

}  // namespace iket::exporter
