#include "cli/selection_options.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/json_file.h"
#include "cli/terminal.h"

namespace iket::cli {
namespace {

using Json = nlohmann::json;
using session::Selection;

constexpr std::string_view kConfigKeys[] = {"kernel",  "warp-trace", "range-filter", "launch",
                                            "cluster", "cta-sample", "sm",           "clusters"};
constexpr size_t kMostText = 100'000;  // Linux gives a variable 128 KiB

// A line that a process could not read in its environment.
Result<void> CheckLine(std::string_view option, const std::string& text) {
  if (text.find_first_of(std::string_view("\n\0", 2)) == std::string::npos) return {};
  return Fail(ErrorKind::kUsage, "{}: no line breaks, and no zeros", option);
}

// Takes over what was parsed, or says which option is wrong.
template <typename Parsed, typename Into>
Result<void> Keep(std::string_view option, Parsed parsed, Into& into) {
  if (!parsed) return FailIn(std::string(option), parsed.error());
  into = std::move(*parsed);
  return {};
}

// "N=NAME".
Result<void> TakeTrigger(const std::string& text, Selection& selection) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return Fail(ErrorKind::kUsage, "--pmevent: '{}' is not of the form N=NAME", Printable(text));
  }
  const auto mask = session::ParseTrigger(std::string_view(text).substr(0, equals));
  if (!mask) return FailIn("--pmevent", mask.error());
  selection.triggers.insert_or_assign(*mask, text.substr(equals + 1));
  return CheckLine("--pmevent", text);
}

Result<void> TakeLaunches(std::string_view option, std::string_view text, Selection& selection) {
  std::pair<uint64_t, uint64_t> launches;
  if (auto done = Keep(option, session::ParseLaunches(text), launches); !done) return done;
  std::tie(selection.first_launch, selection.end_launch) = launches;
  return {};
}

// [x, y, z], null or "all".
Result<std::optional<std::array<uint32_t, 3>>> ClusterOf(const Json& value) {
  using Cluster = std::optional<std::array<uint32_t, 3>>;
  if (value.is_null() || value == "all") return Cluster();
  const bool fits =
      value.is_array() && value.size() == 3 && std::ranges::all_of(value, [](const Json& place) {
        return place.is_number_unsigned() && place <= UINT32_MAX;
      });
  if (!fits || value[1] > UINT16_MAX || value[2] > UINT16_MAX) {  // as large as a grid may be
    return Fail(ErrorKind::kBadInput, "a cluster is [x, y, z], null or \"all\"");
  }
  return Cluster({value[0], value[1], value[2]});
}

Result<void> TakeRules(const Json& rules, std::vector<session::ClusterRule>& taken) {
  if (!rules.is_object()) return Fail(ErrorKind::kBadInput, "not an object of kernel names");
  for (const auto& [part, value] : rules.items()) {
    auto cluster = ClusterOf(value);
    if (!cluster) return FailIn(fmt::format("'{}'", Printable(part)), cluster.error());
    if (auto done = CheckLine("a kernel name", part); !done) return done;
    taken.push_back({part, *cluster});
  }
  return {};
}

Result<void> TakeKey(std::string_view key, const Json& value, Selection& selection) {
  const auto text = [&value] {
    return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
  };
  if (key == "kernel") {
    selection.kernels = text();
    if (selection.kernels.empty()) return Fail(ErrorKind::kBadInput, "not a regular expression");
    return CheckLine("a regular expression", selection.kernels);
  }
  if (key == "warp-trace") {
    selection.warps = text();
    if (selection.warps.empty()) return Fail(ErrorKind::kBadInput, "not a regular expression");
    return CheckLine("a regular expression", selection.warps);
  }
  if (key == "range-filter") {
    selection.events = text();
    if (selection.events.empty()) return Fail(ErrorKind::kBadInput, "not a regular expression");
    return CheckLine("a regular expression", selection.events);
  }
  if (key == "launch") return TakeLaunches("the value", text(), selection);
  if (key == "cta-sample") {
    return Keep("the value", session::ParseSample(text()), selection.ctas.sample);
  }
  if (key == "sm") return Keep("the value", session::ParseSms(text()), selection.ctas.sms);
  if (key == "cluster") return Keep("the value", ClusterOf(value), selection.ctas.cluster);
  if (key == "clusters") return TakeRules(value, selection.rules);
  return Fail(ErrorKind::kBadInput, "no such key; there are {}", fmt::join(kConfigKeys, ", "));
}

}  // namespace

void AddSelection(CLI::App& command, SelectionOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    command.add_option(name, value, help)->type_name(type)->group("What is recorded");
  };
  add("--kernel", options.kernels,
      "Only kernels in whose name this extended regular expression is found; others run as they "
      "are",
      "REGEX");
  add("--warp-trace", options.warps,
      "Also kernels without marks in whose name this is found: begin and end of each warp",
      "REGEX");
  add("--range-filter", options.events,
      "Only marks and ranges in whose name, category, group or lane this extended regular "
      "expression is found; in the code of kernels the others stay as they are",
      "REGEX");
  command
      .add_option("--pmevent", options.triggers,
                  "In code that declares no marks: each pmevent of mask N (PMTRIG in machine code) "
                  "is a mark of this name; may be repeated")
      ->type_name("N=NAME")
      ->expected(1)
      ->take_all()
      ->group("What is recorded");
  add("--launch", options.launches,
      "Only launches A to B, B not included, of recorded kernels, counted from 0 in each process, "
      "the launch of a graph as one; the program waits for the GPU where they begin and end",
      "A:B");
  add("--cluster", options.cluster,
      "Only the cluster at this place of each grid; without clusters, the CTA", "X,Y,Z");
  add("--cta-sample", options.sample, "Only each N-th CTA", "N");
  add("--sm", options.sms, "Only CTAs on these SMs, such as 0-3,7", "LIST");
  add("--nvtx", options.nvtx, "Only while an NVTX range of this name is open", "NAME");
  command
      .add_flag("--paused", options.by_program,
                "Only from when the program says so: iket/session.h")
      ->group("What is recorded");
  add("--config", options.config,
      "A JSON file with these options, {\"kernel\": \"gemm\", \"cta-sample\": 8, \"clusters\": "
      "{\"NAME\": [X,Y,Z]}}, or as run-iket's --enabled-cluster-config takes it",
      "FILE");
}

Result<Selection> ParseConfig(const std::string& untrusted, const std::string& name) {
  auto parsed = ParseJsonObject(untrusted, name);
  if (!parsed) return tl::unexpected(parsed.error());
  const Json file = std::move(*parsed);
  const bool is_ours = file.empty() || std::ranges::any_of(file.items(), [](const auto& item) {
                         return std::ranges::find(kConfigKeys, std::string_view(item.key())) !=
                                std::end(kConfigKeys);
                       });
  Selection selection;
  if (!is_ours) {
    if (auto done = TakeRules(file, selection.rules); !done) return FailIn(name, done.error());
    return selection;
  }
  for (const auto& [key, value] : file.items()) {
    if (auto done = TakeKey(key, value, selection); !done) {
      Error error = done.error();
      error.kind = ErrorKind::kBadInput;
      return FailIn(fmt::format("{}: '{}'", name, key), error);
    }
  }
  return selection;
}

Result<Selection> ReadSelection(const SelectionOptions& options) {
  Selection selection;
  if (!options.config.empty()) {
    const auto text = ReadConfiguration(options.config);
    if (!text) return tl::unexpected(text.error());
    auto parsed = ParseConfig(*text, options.config);
    if (!parsed) return parsed;
    selection = std::move(*parsed);
  }
  Result<void> done;
  if (!options.kernels.empty()) {
    selection.kernels = options.kernels;
    done = CheckLine("--kernel", options.kernels);
  }
  if (done && !options.warps.empty()) {
    selection.warps = options.warps;
    done = CheckLine("--warp-trace", options.warps);
  }
  if (done && !options.events.empty()) {
    selection.events = options.events;
    done = CheckLine("--range-filter", options.events);
  }
  for (const std::string& trigger : options.triggers) {
    if (done) done = TakeTrigger(trigger, selection);
  }
  if (done && !options.launches.empty())
    done = TakeLaunches("--launch", options.launches, selection);
  if (done && !options.cluster.empty()) {
    done = Keep("--cluster", session::ParseCluster(options.cluster), selection.ctas.cluster);
  }
  if (done && !options.sample.empty()) {
    done = Keep("--cta-sample", session::ParseSample(options.sample), selection.ctas.sample);
  }
  if (done && !options.sms.empty()) {
    done = Keep("--sm", session::ParseSms(options.sms), selection.ctas.sms);
  }
  selection.nvtx = options.nvtx;
  if (done) done = CheckLine("--nvtx", options.nvtx);
  selection.by_program = options.by_program;
  if (done) done = CheckSelection(selection);
  if (!done) return tl::unexpected(done.error());
  return selection;
}

Result<std::vector<session::ClusterRule>> ReadClusterRules(const std::string& path) {
  const auto file = ReadJsonObject(path);
  if (!file) return tl::unexpected(file.error());
  std::vector<session::ClusterRule> rules;
  if (auto done = TakeRules(*file, rules); !done) return FailIn(path, done.error());
  return rules;
}

Result<void> CheckSelection(const Selection& selection) {
  if (session::Encode(selection).size() > kMostText) {
    return Fail(ErrorKind::kUsage,
                "more names and rules are selected than fit into an environment variable");
  }
  if (auto chooser = session::KernelChooser::Make(selection); !chooser) {
    return tl::unexpected(chooser.error());
  }
  return {};
}

}  // namespace iket::cli
