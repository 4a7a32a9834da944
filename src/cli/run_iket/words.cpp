#include "cli/run_iket/words.h"

#include <algorithm>

namespace iket::cli::run_iket {
namespace {

// The long names, without dashes, that begin with `part`; the one that is `part`, if there is.
std::vector<std::string> NamesFrom(const CLI::App& app, const std::string& part) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name == part) return {name};
      if (name.starts_with(part)) names.push_back(name);
    }
  }
  return names;
}

const CLI::App* SubcommandOf(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  const auto found = std::ranges::find(all, name, &CLI::App::get_name);
  return found != all.end() ? *found : nullptr;
}

bool TakesValue(const CLI::App& app, const std::string& option) {
  const CLI::Option* const found = app.get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_max() > 0;
}

}  // namespace

Result<void> ReadWords(const CLI::App& app, std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    if (!word.starts_with("-")) {
      if (at == &app) {
        at = SubcommandOf(app, word);
        if (at == nullptr) {
          return Fail(ErrorKind::kUsage, "unknown command '{}'; see {} --help", word,
                      app.get_name());
        }
      }
      continue;
    }
    const size_t equals = word.find('=');
    if (word.starts_with("--")) {
      const auto names = NamesFrom(*at, word.substr(2, equals - 2));
      if (names.size() > 1) {
        return Fail(ErrorKind::kUsage, "{}: --{} or --{}?", word, names[0], names[1]);
      }
      if (!names.empty()) {
        word = "--" + names.front() + (equals == std::string::npos ? "" : word.substr(equals));
      }
    }
    if (equals == std::string::npos && TakesValue(*at, word)) ++i;
  }
  return {};
}

}  // namespace iket::cli::run_iket
