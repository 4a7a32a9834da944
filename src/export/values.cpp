#include "export/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "ring/event_kind.h"

namespace iket::exporter {
namespace {

template <typename Float>
void AppendFloat(std::string& text, Float number) {
  if (std::isnan(number)) {  // of either sign, whatever its other bits
    text += "nan";
  } else {
    fmt::format_to(std::back_inserter(text), "{}", number);
  }
}

bool IsFinite(trace::PayloadType type, uint64_t bits) {
  if (type == trace::PayloadType::kF32) {
    return std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return type != trace::PayloadType::kF64 || std::isfinite(std::bit_cast<double>(bits));
}

}  // namespace

std::vector<std::string> ValueNames(const trace::Model& model,
                                    const trace::Declaration& declaration,
                                    std::span<const std::string_view> reserved) {
  std::vector<std::string> names;
  const size_t count = std::min<size_t>(declaration.more.size() + 1, ring::kMostValues);
  for (size_t i = 0; i < count; ++i) {
    const trace::StringId id = i == 0 ? declaration.payload_name : declaration.more[i - 1].name;
    std::string name = model.String(id);
    const auto is_taken = [&] {
      return name.empty() || name.starts_with("end_") ||
             std::ranges::find(reserved, name) != reserved.end() ||
             std::ranges::find(names, name) != names.end();
    };
    if (i != 0 || id != 0) {
      while (is_taken()) name = fmt::format("{}: {}", i + 1, name);
    }
    names.push_back(std::move(name));
  }
  return names;
}

void AppendNumber(std::string& text, trace::PayloadType type, uint64_t bits) {
  const auto put = [&text](auto number) { fmt::format_to(std::back_inserter(text), "{}", number); };
  const auto low = static_cast<uint32_t>(bits);
  switch (type) {
    case trace::PayloadType::kNone:
      return;
    case trace::PayloadType::kU32:
      return put(low);
    case trace::PayloadType::kS32:
      return put(static_cast<int32_t>(low));
    case trace::PayloadType::kF32:
      return AppendFloat(text, std::bit_cast<float>(low));
    case trace::PayloadType::kU64:
      return put(bits);
    case trace::PayloadType::kS64:
      return put(static_cast<int64_t>(bits));
    case trace::PayloadType::kF64:
      return AppendFloat(text, std::bit_cast<double>(bits));
  }
}

void AppendJsonNumber(std::string& text, trace::PayloadType type, uint64_t bits) {
  const bool quoted = !IsFinite(type, bits);
  if (quoted) text += '"';
  AppendNumber(text, type, bits);
  if (quoted) text += '"';
}

EventValues::EventValues(const trace::Model& model, std::vector<std::string_view> reserved)
    : model_(model) {
  reserved.emplace_back("payload");
  for (const trace::Declaration& declaration : model.declarations) {
    std::vector<std::string>& names = names_.emplace_back(ValueNames(model, declaration, reserved));
    if (names.front().empty()) names.front() = "payload";
  }
}

std::span<const NamedValue> EventValues::Of(uint32_t event) {
  values_.clear();
  const uint32_t row = model_.events.declaration[event];
  const trace::Declaration& declaration = model_.declarations[row];
  const std::vector<std::string>& names = names_[row];
  const trace::PayloadType type = declaration.kind == trace::EventKind::kUnknown
                                      ? trace::PayloadType::kU64
                                      : declaration.payload;
  if (type != trace::PayloadType::kNone && model_.HasPayload(event)) {
    values_.push_back({names.front(), type, model_.events.payload[event], true});
  }
  if (model_.values.size() == 0) return values_;
  const auto [first, last] = model_.values.Of(event);
  for (size_t i = first; i < last; ++i) {
    const size_t index = model_.values.index[i];
    if (index + 1 >= names.size()) continue;  // the payload, again
    values_.push_back(
        {names[index + 1], declaration.more[index].type, model_.values.value[i], false});
  }
  return values_;
}

}  // namespace iket::exporter
