// values.h: what the events of a model carry, by name and as text, for writers of rows and objects.
//
// A value is called what its declaration calls it, a payload without a name "payload". Of two with
// one name the later one has its number before it ("2: m"), so that the names of one event differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/model.h"

namespace iket::exporter {

// The names of a declaration's values, the payload's first; "" a payload without one. None is in
// `reserved` or begins with "end_". No more than an event can have.
std::vector<std::string> ValueNames(const trace::Model& model,
                                    const trace::Declaration& declaration,
                                    std::span<const std::string_view> reserved);

struct NamedValue {
  std::string_view name;
  trace::PayloadType type = trace::PayloadType::kNone;
  uint64_t bits = 0;
  bool is_payload = false;
};

// As text: integers in full, floats in the fewest digits that read back to the same bits' value;
// "nan", "inf" and "-inf".
void AppendNumber(std::string& text, trace::PayloadType type, uint64_t bits);
// As JSON, which has no such numbers: these are strings there.
void AppendJsonNumber(std::string& text, trace::PayloadType type, uint64_t bits);

class EventValues {
 public:
  // `reserved`: names that no value has, as they are somebody else's where it is written.
  explicit EventValues(const trace::Model& model, std::vector<std::string_view> reserved = {});

  // What the event carries, as far as it is kept; the payload of one that nobody declared is its
  // id. Valid until the next call.
  std::span<const NamedValue> Of(uint32_t event);

 private:
  const trace::Model& model_;
  std::vector<std::vector<std::string>> names_;  // by declaration
  std::vector<NamedValue> values_;
};

}  // namespace iket::exporter
