#include "cli/run_iket/instrument_config.h"

#include <string_view>

#include "cli/json_file.h"
#include "cli/terminal.h"

namespace iket::cli::run_iket {
namespace {

using Json = nlohmann::json;

// Absent, or of another type: nothing in it.
const Json& Member(const Json& object, const char* key) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : kNone;
}

// An extended regular expression that is found in these texts and in no others.
std::string ExactlyThese(const std::set<std::string>& texts) {
  std::string expression;
  for (const std::string& text : texts) {
    expression += expression.empty() ? "^(" : "|";
    for (const char c : text) {
      if (std::string_view(".[]{}()\\*+?^$|").find(c) != std::string_view::npos) expression += '\\';
      expression += c;
    }
  }
  return expression + ")$";
}

// A line break cannot be told to a process (session/selection.h).
bool IsName(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty() &&
         value.get_ref<const std::string&>().find_first_of(std::string_view("\n\0", 2)) ==
             std::string::npos;
}

}  // namespace

Result<InstrumentConfig> ReadInstrumentConfig(const std::string& path) {
  const auto file = ReadJsonObject(path);
  if (!file) return tl::unexpected(file.error());
  if (Member(Member(*file, "meta"), "version") != 1) {
    return Fail(ErrorKind::kBadInput, "{}: not an instrument.config.json of version 1", path);
  }
  InstrumentConfig config;
  bool all_named = true;
  for (const Json& module : Member(*file, "modules")) {
    for (const auto& [kernel, variants] : Member(module, "functions").items()) {
      if (!IsName(kernel)) {
        return Fail(ErrorKind::kBadInput, "{}: '{}' is no name of a kernel", path,
                    Printable(kernel));
      }
      config.kernels.insert(kernel);
      for (const Json& variant : variants) {
        for (const Json& point : Member(variant, "points")) {
          const Json& name = Member(point, "name");
          all_named &= IsName(name);
          if (all_named) config.events.insert(name.get<std::string>());
        }
      }
    }
  }
  if (config.kernels.empty()) {
    return Fail(ErrorKind::kBadInput, "{}: names no kernel", path);
  }
  if (!all_named) config.events.clear();
  return config;
}

void Select(const InstrumentConfig& config, session::Selection& selection) {
  selection.kernels = ExactlyThese(config.kernels);
  if (!config.events.empty()) selection.events = ExactlyThese(config.events);
}

}  // namespace iket::cli::run_iket
