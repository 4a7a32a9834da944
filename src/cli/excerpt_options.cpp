#include "cli/excerpt_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "cli/terminal.h"
#include "cli/text.h"
#include "export/tracks.h"

namespace iket::cli {
namespace {

constexpr size_t kMostNames = 10;  // of what there is instead

// "1.5us" in ns.
std::optional<double> Nanoseconds(std::string_view text) {
  double value = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [name, ns] : kUnits) {
    if (unit == name) return value * ns;
  }
  return std::nullopt;
}

// The first few of all that there are.
std::string Named(std::string_view what, const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNames);
  std::string text = fmt::format(
      "{} {}", what, fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

template <typename T>
Result<void> Keep(std::string_view option, Result<T> parsed, auto& into) {
  if (!parsed) return FailIn(std::string(option), parsed.error());
  into = std::move(*parsed);
  return {};
}

// A part of a file's name: what a person may want to type.
std::string FileWord(std::string_view name) {
  constexpr size_t kMost = 60;
  std::string word;
  for (const char c : name.substr(0, kMost)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    word += plain ? c : '_';
  }
  return word;
}

}  // namespace

void AddExcerpt(CLI::App& command, ExcerptOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return command.add_option(name, value, help)->type_name(type)->group("What is written");
  };
  add("--kernel", options.kernels,
      "Only launches of kernels in whose name this extended regular expression is found", "REGEX");
  add("--launch", options.launches,
      "Only these launches, by the numbers (#3) that timeline and report show: 3, or 5:8 (8 not "
      "included), or a list of both",
      "LIST");
  add("--name,--range-filter", options.events,
      "Only marks and ranges in whose name, category, group or lane this extended regular "
      "expression is found",
      "REGEX");
  add("--cluster", options.cluster,
      "Only the cluster at this place of each grid; without clusters, the CTA", "X,Y,Z");
  add("--cta", options.cta, "Only the CTA at this place of each grid", "X,Y,Z");
  add("--sm", options.sms, "Only CTAs on these SMs, such as 0-3,7", "LIST");
  add("--window", options.window,
      "Only what overlaps this time, counted from the first moment of the trace, such as "
      "10us..1.5ms; ranges and warps that cross an edge stay whole",
      "FROM..TO");
  add("--split", options.split, "A file for each launch, kernel or SM", "BY")
      ->check(CLI::IsMember({"launch", "kernel", "sm"}).description(""));
}

Result<std::pair<double, double>> ParseWindow(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots != text.npos) {
    const std::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
    constexpr double kEver = std::numeric_limits<double>::infinity();
    const auto from = first.empty() ? std::optional(-kEver) : Nanoseconds(first);
    const auto to = last.empty() ? std::optional(kEver) : Nanoseconds(last);
    if (from && to && *from < *to && (!first.empty() || !last.empty()))
      return std::pair(*from, *to);
  }
  return Fail(ErrorKind::kUsage,
              "'{}' is not of the form FROM..TO with FROM below TO, in ns, us, ms or s", text);
}

Result<std::vector<std::pair<uint64_t, uint64_t>>> ParseLaunchList(std::string_view text) {
  std::vector<std::pair<uint64_t, uint64_t>> list;
  for (;;) {
    const size_t comma = text.find(',');
    const auto part = session::ParseLaunches(text.substr(0, comma));
    if (!part) return tl::unexpected(part.error());
    list.push_back(*part);
    if (comma == text.npos) return list;
    text.remove_prefix(comma + 1);
  }
}

Result<ExcerptChoice> ExcerptChoice::Make(const ExcerptOptions& options) {
  auto chooser =
      session::KernelChooser::Make({.kernels = options.kernels, .events = options.events});
  if (!chooser) return FailIn("export", chooser.error());
  ExcerptChoice choice(std::move(*chooser));
  choice.options_ = options;
  Result<void> done;
  const auto take = [&](std::string_view option, const std::string& value, auto parse, auto& into) {
    if (value.empty() || !done) return;
    done = Keep(option, parse(value), into);
  };
  take("--launch", options.launches, ParseLaunchList, choice.launches_);
  take("--cluster", options.cluster, session::ParseCluster, choice.of_.cluster);
  take("--cta", options.cta, session::ParseCluster, choice.of_.cta);
  take("--sm", options.sms, session::ParseSms, choice.of_.sms);
  take("--window", options.window, ParseWindow, choice.of_.window);
  if (!done) return tl::unexpected(done.error());
  const std::pair<std::string_view, const std::string&> given[] = {
      {"--kernel", options.kernels},  {"--launch", options.launches}, {"--name", options.events},
      {"--cluster", options.cluster}, {"--cta", options.cta},         {"--sm", options.sms},
      {"--window", options.window}};
  for (const auto& [option, value] : given) {
    if (value.empty()) continue;
    choice.words_ +=
        fmt::format("{}{} {}", choice.words_.empty() ? "" : " ", option, ShellWord(value));
  }
  return choice;
}

trace::ExcerptOf ExcerptChoice::RowsOf(const trace::Model& model) const {
  trace::ExcerptOf of = of_;
  if (!options_.kernels.empty() || !launches_.empty()) {
    for (const trace::Launch& launch : model.launches) {
      bool wanted = options_.kernels.empty();
      if (!wanted && launch.kernel != trace::kNoRow) {
        const trace::Kernel& kernel = model.kernels[launch.kernel];
        wanted = chooser_.Wants(model.String(kernel.mangled), model.String(kernel.demangled));
      }
      const auto has = [&](const std::pair<uint64_t, uint64_t>& range) {
        return launch.sequence != trace::kNoRow && range.first <= launch.sequence &&
               launch.sequence < range.second;
      };
      of.launches.push_back(wanted && (launches_.empty() || std::ranges::any_of(launches_, has)));
    }
  }
  if (!options_.events.empty()) {
    for (const trace::Declaration& it : model.declarations) {
      of.declarations.push_back(std::ranges::any_of(
          std::array{it.name, it.category, it.group, it.lane},
          [&](trace::StringId id) { return id != 0 && chooser_.WantsEvent(model.String(id)); }));
    }
  }
  return of;
}

std::string ExcerptChoice::WhatThereIs(const trace::Model& model) const {
  std::vector<std::string> parts;
  const auto names = [&](std::string_view what, const std::set<std::string>& all) {
    parts.push_back(all.empty() ? fmt::format("no {}", what)
                                : Named(what, std::vector(all.begin(), all.end())));
  };
  if (!options_.kernels.empty()) {
    std::set<std::string> all;
    for (const trace::Launch& launch : model.launches) {
      if (launch.kernel != trace::kNoRow) {
        all.insert(model.String(model.kernels[launch.kernel].short_name));
      }
    }
    names("the kernels", all);
  }
  if (!launches_.empty()) {
    uint32_t first = trace::kNoRow, last = 0;
    for (const trace::Launch& launch : model.launches) {
      if (launch.sequence == trace::kNoRow) continue;
      first = std::min(first, launch.sequence);
      last = std::max(last, launch.sequence);
    }
    parts.push_back(first > last ? "no launch with a number"
                                 : fmt::format("launches from #{} to #{}", first, last));
  }
  if (!options_.events.empty()) {
    std::set<std::string> all;
    for (const uint32_t row : model.events.declaration) {
      if (model.declarations[row].name != 0) all.insert(model.DeclarationName(row));
    }
    names("the names", all);
  }
  const trace::Warps& warps = model.warps;
  if (of_.cluster || of_.cta) {
    std::array<uint32_t, 3> most{}, most_cluster{};
    for (uint32_t warp = 0; warp < warps.size(); ++warp) {
      const std::array<uint32_t, 3> cta = {warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]};
      const auto cluster = model.ClusterOf(warp);
      for (size_t i = 0; i < 3; ++i) {
        most[i] = std::max(most[i], cta[i]);
        most_cluster[i] = std::max(most_cluster[i], cluster[i]);
      }
    }
    if (of_.cta) parts.push_back(fmt::format("CTAs up to {}", fmt::join(most, ",")));
    if (of_.cluster)
      parts.push_back(fmt::format("clusters up to {}", fmt::join(most_cluster, ",")));
  }
  if (!of_.sms.empty()) {
    const auto [least, most] = std::ranges::minmax(warps.sm);
    parts.push_back(fmt::format("SMs from {} to {}", least, most));
  }
  if (of_.window) {
    parts.push_back(fmt::format("times from {} to {}", Duration(std::ranges::min(warps.begin_ns)),
                                Duration(std::ranges::max(warps.end_ns))));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Result<trace::Model> ExcerptChoice::Of(const trace::Model& model, const std::string& path) const {
  trace::Model part = trace::Excerpt(model, RowsOf(model), words_);
  const bool no_event = !options_.events.empty() &&
                        part.ranges.size() + part.marks.size() + part.unmatched_ends.size() == 0;
  if (part.warps.size() != 0 && !no_event) return part;
  return NothingOf(model, path);
}

Result<trace::ExcerptOf> ExcerptChoice::RowsOf(const trace::Model& model,
                                               const std::string& path) const {
  trace::ExcerptOf of = RowsOf(model);
  const std::vector<bool>& names = of.declarations;
  if (!names.empty() && std::ranges::find(names, true) == names.end())
    return NothingOf(model, path);
  const trace::ExcerptRows rows(model, of);
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    if (rows.HasLaunch(model.warps.launch[warp]) && rows.HasWarp(warp)) return of;
  }
  return NothingOf(model, path);
}

tl::unexpected<Error> ExcerptChoice::NothingOf(const trace::Model& model,
                                               const std::string& path) const {
  return Fail(ErrorKind::kNothing, "{}: {} leaves nothing; it has {}", path, words_,
              Printable(WhatThereIs(model)));
}

std::vector<Piece> PiecesOf(const trace::Model& model, std::string_view split) {
  std::vector<Piece> pieces;
  std::set<std::string> taken;
  const auto add = [&](std::string name, std::string words, trace::ExcerptOf of) {
    // Of two that are called the same in a file's name, the second has its number.
    const std::string wanted = name;
    for (size_t n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}", wanted, n);
    pieces.push_back({std::move(name), std::move(words), std::move(of)});
  };
  const auto launches = [&](auto wanted) {
    trace::ExcerptOf of;
    for (uint32_t row = 0; row < model.launches.size(); ++row) of.launches.push_back(wanted(row));
    return of;
  };
  if (split == "launch") {
    for (uint32_t row = 0; row < model.launches.size(); ++row) {
      const trace::Launch& launch = model.launches[row];
      std::string name = launch.sequence != trace::kNoRow ? fmt::format("launch{}", launch.sequence)
                                                          : fmt::format("grid{}", launch.grid_id);
      if (launch.node != trace::kNoRow) name += fmt::format("-node{}", launch.node);
      add(std::move(name), "launch " + exporter::LaunchLabel(model, launch),
          launches([row](uint32_t other) { return other == row; }));
    }
  } else if (split == "kernel") {
    std::set<uint32_t> kernels;
    for (const trace::Launch& launch : model.launches) kernels.insert(launch.kernel);
    for (const uint32_t kernel : kernels) {
      const std::string name =
          kernel == trace::kNoRow ? "unknown" : model.String(model.kernels[kernel].short_name);
      add("kernel-" + FileWord(name), "kernel " + name,
          launches([&](uint32_t row) { return model.launches[row].kernel == kernel; }));
    }
  } else {
    const std::set<uint32_t> sms(model.warps.sm.begin(), model.warps.sm.end());
    for (const uint32_t sm : sms) {
      add(fmt::format("sm{}", sm), fmt::format("SM {}", sm), {.sms = {{sm, sm}}});
    }
  }
  return pieces;
}

}  // namespace iket::cli
