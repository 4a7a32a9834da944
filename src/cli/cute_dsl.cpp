#include "cli/cute_dsl.h"

#include <cstdlib>

namespace iket::cli {
namespace {

// Of @cute.jit and of @cute.experimental.jit: neither reads the other's.
constexpr const char* kVariables[] = {"CUTE_DSL_COMPILER_OPT",
                                      "CUTE_EXPERIMENTAL_DSL_COMPILER_OPT"};

bool IsSeparator(char c) {
  return std::string_view(", \t\n\v\f\r").find(c) != std::string_view::npos;
}

bool EndsAt(std::string_view text, size_t at) { return at >= text.size() || IsSeparator(text[at]); }

// `text` begins with the token, in any of its forms.
bool IsIket(std::string_view text) {
  if (text.starts_with("--")) text.remove_prefix(2);
  constexpr std::string_view kToken = "iket";
  if (!text.starts_with(kToken)) return false;
  text.remove_prefix(kToken.size());
  if (EndsAt(text, 0)) return true;
  const bool has_value = text.front() == '=';
  const std::string_view value = has_value ? text.substr(1) : text;
  // An argument in braces may hold separators; without its end it is a value like any other.
  if (value.starts_with('{')) {
    const size_t close = value.find('}');
    if (close != std::string_view::npos && EndsAt(value, close + 1)) return true;
  }
  return has_value;
}

bool HasIket(std::string_view options) {
  for (size_t i = 0; i < options.size(); ++i) {
    if ((i == 0 || IsSeparator(options[i - 1])) && IsIket(options.substr(i))) return true;
  }
  return false;
}

}  // namespace

std::string WithIket(std::string_view options) {
  if (HasIket(options)) return std::string(options);
  // Never a comma: a value in front of it would swallow the token.
  return options.empty() ? "iket" : std::string(options) + " iket";
}

std::vector<std::pair<std::string, std::string>> CuteDslEnvironment() {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const char* name : kVariables) {
    const char* const set = std::getenv(name);
    const std::string_view before = set != nullptr ? set : "";
    if (std::string after = WithIket(before); after != before) {
      changes.emplace_back(name, std::move(after));
    }
  }
  return changes;
}

}  // namespace iket::cli
