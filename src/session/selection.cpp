#include "session/selection.h"

#include <regex.h>

#include <charconv>

namespace iket::session {
namespace {

// The number that is all of a text, in decimal.
template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// What stands before the first `separator`; `text` keeps what is behind it.
std::string_view Next(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view first = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return first;
}

Result<void> DecodeLine(std::string_view line, Selection& selection) {
  std::string_view value = line;
  const std::string_view wish = Next(value, ' ');
  const auto keep = [](auto parsed, auto& into) -> Result<void> {
    if (!parsed) return tl::unexpected(parsed.error());
    into = std::move(*parsed);
    return {};
  };
  if (wish == "kernel") {
    selection.kernels = value;
    return {};
  }
  if (wish == "warps") {
    selection.warps = value;
    return {};
  }
  if (wish == "events") {
    selection.events = value;
    return {};
  }
  if (wish == "pmevent") {
    const auto mask = ParseTrigger(Next(value, ' '));
    if (!mask) return tl::unexpected(mask.error());
    if (value.empty()) return Fail(ErrorKind::kUsage, "a name is missing");
    selection.triggers.insert_or_assign(*mask, std::string(value));
    return {};
  }
  if (wish == "cluster") return keep(ParseCluster(value), selection.ctas.cluster);
  if (wish == "cta-sample") return keep(ParseSample(value), selection.ctas.sample);
  if (wish == "sm") return keep(ParseSms(value), selection.ctas.sms);
  if (wish == "rule") {
    const std::string_view which = Next(value, ' ');
    ClusterRule rule{.part = std::string(value), .cluster = std::nullopt};
    if (which != "all") {
      if (auto done = keep(ParseCluster(which), rule.cluster); !done) return done;
    }
    selection.rules.push_back(std::move(rule));
    return {};
  }
  if (wish == "launch") {
    const auto launches = ParseLaunches(value);
    if (!launches) return tl::unexpected(launches.error());
    std::tie(selection.first_launch, selection.end_launch) = *launches;
    return {};
  }
  if (wish == "window" && value == "session") {
    selection.by_program = true;
    return {};
  }
  if (wish == "window" && value.starts_with("nvtx ")) {
    selection.nvtx = value.substr(5);
    return {};
  }
  return Fail(ErrorKind::kUsage, "nobody knows '{}'", wish);
}

std::string Text(const std::array<uint32_t, 3>& cluster) {
  return fmt::format("{}", fmt::join(cluster, ","));
}

}  // namespace

Result<std::array<uint32_t, 3>> ParseCluster(std::string_view text) {
  std::array<uint32_t, 3> cluster{};
  std::string_view rest = text;
  for (uint32_t& place : cluster) {
    const auto number = Number<uint32_t>(Next(rest, ','));
    if (!number) return Fail(ErrorKind::kUsage, "'{}' is not of the form X,Y,Z", text);
    place = *number;
    if (rest.empty()) break;
  }
  if (!rest.empty() || text.ends_with(',')) {
    return Fail(ErrorKind::kUsage, "'{}' is not of the form X,Y,Z", text);
  }
  return cluster;
}

Result<uint32_t> ParseSample(std::string_view text) {
  const auto number = Number<uint32_t>(text);
  if (!number || *number == 0) {
    return Fail(ErrorKind::kUsage, "'{}' is not a number from 1 on", text);
  }
  return *number;
}

Result<uint32_t> ParseTrigger(std::string_view text) {
  constexpr uint32_t kMost = 4095, kPop = 31;
  const auto number = Number<uint32_t>(text);
  if (!number || *number == 0 || *number > kMost || *number == kPop) {
    return Fail(ErrorKind::kUsage, "'{}' is not a number from 1 to {}, and not {}", text, kMost,
                kPop);
  }
  return *number;
}

Result<std::vector<ring::SmRange>> ParseSms(std::string_view text) {
  std::vector<ring::SmRange> sms;
  std::string_view rest = text;
  do {
    std::string_view end = Next(rest, ',');
    const bool is_range = end.find('-') != std::string_view::npos;
    const auto first = Number<uint32_t>(Next(end, '-'));
    const auto last = is_range ? Number<uint32_t>(end) : first;
    if (!first || !last || *last < *first) {
      return Fail(ErrorKind::kUsage, "'{}' is no list of SMs such as 0-3,7", text);
    }
    sms.push_back({*first, *last});
  } while (!rest.empty() && sms.size() <= ring::kMaxSmRanges);
  if (text.ends_with(',')) {
    return Fail(ErrorKind::kUsage, "'{}' is no list of SMs such as 0-3,7", text);
  }
  if (sms.size() > ring::kMaxSmRanges) {
    return Fail(ErrorKind::kUsage, "more than {} ranges of SMs", ring::kMaxSmRanges);
  }
  return sms;
}

Result<std::pair<uint64_t, uint64_t>> ParseLaunches(std::string_view text) {
  std::pair<uint64_t, uint64_t> launches{0, UINT64_MAX};
  std::string_view end = text;
  const std::string_view first = Next(end, ':');
  const bool is_one = first.size() == text.size();
  const auto from = first.empty() ? std::optional<uint64_t>(0) : Number<uint64_t>(first);
  const auto until = end.empty() ? std::optional<uint64_t>(UINT64_MAX) : Number<uint64_t>(end);
  if (text.empty() || text == ":" || !from || !until || *from == UINT64_MAX || *until <= *from) {
    return Fail(ErrorKind::kUsage, "'{}' is not of the form A:B with A below B", text);
  }
  launches = {*from, is_one ? *from + 1 : *until};
  return launches;
}

std::string Encode(const Selection& selection) {
  std::string text;
  const auto line = [&text](std::string_view wish, const auto& value) {
    text += fmt::format("{} {}\n", wish, value);
  };
  if (!selection.kernels.empty()) line("kernel", selection.kernels);
  if (!selection.warps.empty()) line("warps", selection.warps);
  if (!selection.events.empty()) line("events", selection.events);
  for (const auto& [mask, name] : selection.triggers) {
    line("pmevent", fmt::format("{} {}", mask, name));
  }
  if (selection.ctas.cluster) line("cluster", Text(*selection.ctas.cluster));
  if (selection.ctas.sample != 1) line("cta-sample", selection.ctas.sample);
  if (!selection.ctas.sms.empty()) {
    std::string list;
    for (const ring::SmRange& range : selection.ctas.sms) {
      list += fmt::format("{}{}-{}", list.empty() ? "" : ",", range.first, range.last);
    }
    line("sm", list);
  }
  for (const ClusterRule& rule : selection.rules) {
    line("rule", (rule.cluster ? Text(*rule.cluster) : "all") + " " + rule.part);
  }
  if (selection.first_launch != 0 || selection.end_launch != UINT64_MAX) {
    line("launch",
         fmt::format("{}:{}", selection.first_launch,
                     selection.end_launch == UINT64_MAX ? std::string()
                                                        : std::to_string(selection.end_launch)));
  }
  if (selection.by_program) line("window", "session");
  if (!selection.nvtx.empty()) line("window", "nvtx " + selection.nvtx);
  return text;
}

Result<Selection> DecodeSelection(std::string_view untrusted) {
  Selection selection;
  while (!untrusted.empty()) {
    const std::string_view line = Next(untrusted, '\n');
    if (line.empty()) continue;
    if (auto done = DecodeLine(line, selection); !done) {
      return FailIn(fmt::format("{} '{}'", kEnvSelection, line), done.error());
    }
  }
  return selection;
}

struct KernelChooser::Pattern {
  regex_t compiled{};
  bool is_made = false;

  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (is_made) regfree(&compiled);
  }

  static Result<std::unique_ptr<Pattern>> Make(const std::string& text) {
    if (text.empty()) return std::unique_ptr<Pattern>();
    auto pattern = std::make_unique<Pattern>();
    const int error = regcomp(&pattern->compiled, text.c_str(), REG_EXTENDED | REG_NOSUB);
    pattern->is_made = error == 0;
    if (error == 0) return pattern;
    char why[128] = {};
    regerror(error, &pattern->compiled, why, sizeof why);
    return Fail(ErrorKind::kUsage, "'{}' is no regular expression: {}", text, why);
  }
  bool IsIn(const std::string& name) const {
    return regexec(&compiled, name.c_str(), 0, nullptr, 0) == 0;
  }
};

KernelChooser::KernelChooser() = default;
KernelChooser::KernelChooser(KernelChooser&&) noexcept = default;
KernelChooser& KernelChooser::operator=(KernelChooser&&) noexcept = default;
KernelChooser::~KernelChooser() = default;

Result<KernelChooser> KernelChooser::Make(const Selection& selection) {
  KernelChooser chooser;
  chooser.ctas_ = selection.ctas;
  chooser.rules_ = selection.rules;
  auto kernels = Pattern::Make(selection.kernels);
  if (!kernels) return tl::unexpected(kernels.error());
  auto warps = Pattern::Make(selection.warps);
  if (!warps) return tl::unexpected(warps.error());
  auto events = Pattern::Make(selection.events);
  if (!events) return tl::unexpected(events.error());
  chooser.pattern_ = std::move(*kernels);
  chooser.warps_ = std::move(*warps);
  chooser.events_ = std::move(*events);
  return chooser;
}

bool KernelChooser::Wants(const std::string& mangled, const std::string& demangled) const {
  return pattern_ == nullptr || pattern_->IsIn(mangled) || pattern_->IsIn(demangled);
}

bool KernelChooser::WantsWarps(const std::string& mangled, const std::string& demangled) const {
  return warps_ != nullptr && (warps_->IsIn(mangled) || warps_->IsIn(demangled));
}

bool KernelChooser::WantsEvent(const std::string& name) const {
  return events_ == nullptr || events_->IsIn(name);
}

ring::CtaFilter KernelChooser::Ctas(std::string_view mangled) const {
  const ClusterRule* best = nullptr;
  for (const ClusterRule& rule : rules_) {
    if (mangled.find(rule.part) == std::string_view::npos) continue;
    if (best == nullptr || rule.part.size() > best->part.size()) best = &rule;
  }
  ring::CtaFilter ctas = ctas_;
  if (best != nullptr) ctas.cluster = best->cluster;
  return ctas;
}

}  // namespace iket::session
