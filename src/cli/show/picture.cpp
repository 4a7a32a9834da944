#include "cli/show/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "cli/terminal.h"
#include "cli/text.h"
#include "export/values.h"
#include "trace/roles.h"

namespace iket::cli {
namespace {

using analyze::CtaTimeline;
using analyze::Moment;
using analyze::Span;
using analyze::TimelineRow;

// Okabe and Ito's, for people who do not see all colours; black text is readable on all.
constexpr std::array<uint32_t, 8> kPalette = {0xe69f00, 0x56b4e9, 0x009e73, 0xf0e442,
                                              0x4a90d9, 0xe8753a, 0xcc79a7, 0xb0b0b0};
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t kWidestLabel = 28;

bool IsContinued(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return !IsContinued(c); }));
}

std::string Clipped(std::string_view text, size_t width) {
  if (WidthOf(text) <= width) return std::string(text);
  if (width == 0) return {};
  size_t at = 0;
  for (size_t columns = 0; at < text.size(); ++at) {
    if (!IsContinued(text[at]) && ++columns == width) break;
  }
  return fmt::format("{}{}", text.substr(0, at), width == 1 ? "." : "~");
}

std::string PlainText(const Line& line) {
  std::string text;
  for (const Chunk& chunk : line) text += chunk.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string ColouredText(const Line& line) {
  std::string text;
  for (const Chunk& chunk : line) {
    std::string look;
    if (chunk.colour >= 0) {
      const uint32_t rgb = kPalette[static_cast<size_t>(chunk.colour) % kPalette.size()];
      look = fmt::format("30;48;2;{};{};{}", rgb >> 16, rgb >> 8 & 0xff, rgb & 0xff);
    }
    if (chunk.faint) look += look.empty() ? "2" : ";2";
    if (chunk.strong) look += look.empty() ? "7" : ";7";
    text += look.empty() ? chunk.text : fmt::format("\x1b[{}m{}\x1b[0m", look, chunk.text);
  }
  return text;
}

Legend::Legend(const trace::Model& model, const CtaTimeline& timeline) {
  std::set<char> taken;
  const auto add = [&](trace::StringId name) {
    if (looks_.contains(name)) return;
    // A letter of the name if one is free, the first before others, large before small.
    Look look{.letter = '#', .colour = static_cast<int>(looks_.size() % kPalette.size())};
    std::string wanted;
    for (const char c : model.String(name)) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
      wanted += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      wanted += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    wanted += kLetters;
    for (const char c : wanted) {
      if (!taken.insert(c).second) continue;
      look.letter = c;
      break;
    }
    looks_.emplace(name, look);
  };
  for (const TimelineRow& row : timeline.rows) {
    for (const Span& span : row.spans) {
      if (span.moment == Moment::kRange) add(span.name);
    }
  }
}

char Legend::LetterOf(trace::StringId name) const {
  const auto found = looks_.find(name);
  return found == looks_.end() ? '#' : found->second.letter;
}
int Legend::ColourOf(trace::StringId name) const {
  const auto found = looks_.find(name);
  return found == looks_.end() ? 0 : found->second.colour;
}

Picture::Picture(const trace::Model& model, const analyze::Cta& cta, const CtaTimeline& timeline)
    : model_(model),
      cta_(cta),
      timeline_(timeline),
      legend_(model, timeline),
      roles_(trace::RolesOf(model, model.launches[cta.launch])) {
  for (const TimelineRow& row : timeline.rows) {
    label_width_ = std::max(label_width_, WidthOf(LabelOf(row)));
  }
  label_width_ = std::min(label_width_, kWidestLabel) + 1;
}

size_t Picture::LabelWidth(size_t width) const { return std::min(label_width_, width / 3); }

analyze::Columns Picture::ColumnsOf(const Window& window, size_t width) const {
  const uint64_t cycles = window.to - window.from;
  return {.from = window.from,
          .to = window.to,
          .count = static_cast<uint32_t>(std::min<uint64_t>(TimeWidth(width), cycles))};
}

std::string Picture::Time(uint64_t from, uint64_t to) const {
  const uint32_t device = model_.launches[cta_.launch].device;
  const double ns = model_.NsOf(device, cta_.sm, to) - model_.NsOf(device, cta_.sm, from);
  return fmt::format("{} ({})", Duration(ns), Counted(to - from, "cycle"));
}

std::string Picture::Title() const {
  const trace::Launch& launch = model_.launches[cta_.launch];
  const std::string kernel = launch.kernel == trace::kNoRow
                                 ? "unknown kernel"
                                 : model_.String(model_.kernels[launch.kernel].short_name);
  const std::string number =
      launch.sequence == trace::kNoRow ? "" : fmt::format(" #{}", launch.sequence);
  return fmt::format("{}{}, CTA {},{},{} on SM {}: {}, {}", Printable(kernel), number,
                     cta_.place[0], cta_.place[1], cta_.place[2], cta_.sm,
                     Counted(cta_.warps, "warp"), Time(timeline_.begin, timeline_.end));
}

std::string Picture::Losses() const {
  std::vector<std::string> losses;
  const auto add = [&](uint32_t count, std::string_view what) {
    if (count != 0) losses.push_back(fmt::format("{} {}", Counted(count, "warp"), what));
  };
  add(timeline_.missing, "of which nothing is kept");
  add(timeline_.begin_missing, "whose beginning was overwritten");
  add(timeline_.holed, "with a hole");
  add(timeline_.running, "that still ran");
  add(timeline_.end_missing, "without an end");
  add(timeline_.suspect, "that contradict themselves");
  add(timeline_.wrap_gap, "silent for so long that their clock may have wrapped");
  if (timeline_.repeated) losses.emplace_back("several launches that cannot be told apart");
  return fmt::format("{}", fmt::join(losses, ", "));
}

std::string Picture::LabelOf(const TimelineRow& row) const {
  using Kind = TimelineRow::Kind;
  const std::string warp = row.index == trace::kNoRow ? "?" : std::to_string(row.index);
  switch (row.kind) {
    case Kind::kWarp: {
      const auto role = roles_.find(row.index);
      return role == roles_.end() ? fmt::format("warp {:>2}", warp)
                                  : fmt::format("warp {:>2} ({})", warp, Printable(role->second));
    }
    case Kind::kMissing:
      return fmt::format("warp {:>2}", warp);
    case Kind::kMarks:
      return "     marks";
    case Kind::kDepth:
      return fmt::format("     depth {}", row.depth);
    case Kind::kApart: {
      const trace::StringId name = row.token != 0  ? row.token
                                   : row.lane != 0 ? row.lane
                                                   : row.group;
      return fmt::format("     {}", Printable(model_.String(name)));
    }
  }
  return {};
}

Line Picture::Ruler(const Window& window, size_t width) const {
  const analyze::Columns columns = ColumnsOf(window, width);
  const uint32_t device = model_.launches[cta_.launch].device;
  const auto ns = [&](uint64_t cycles) { return model_.NsOf(device, cta_.sm, cycles); };
  const double begin = ns(timeline_.begin), from = ns(window.from) - begin,
               to = ns(window.to) - begin;
  // Steps of 1, 2 or 5 with room for what stands there.
  constexpr double kColumnsAStep = 14;
  const double least = (to - from) * kColumnsAStep / std::max(columns.count, 1u);
  double step = std::pow(10, std::floor(std::log10(std::max(least, 1e-3))));
  while (step < least) step *= step * 2 >= least ? 2 : step * 5 >= least ? 5 : 10;
  std::string text(columns.count, ' ');
  for (double at = std::ceil(from / step - 1e-9) * step; at < to && step > 0; at += step) {
    const auto column = static_cast<size_t>((at - from) / (to - from) * columns.count);
    const std::string mark = fmt::format("|{}", std::abs(at) < step / 2 ? "0" : Duration(at));
    if (column + mark.size() > text.size()) break;
    text.replace(column, mark.size(), mark);
  }
  return {{.text = std::string(LabelWidth(width), ' ')}, {.text = text, .faint = true}};
}

Line Picture::Row(size_t number, const Window& window, size_t width, bool selected) const {
  const TimelineRow& row = timeline_.rows[number];
  const size_t label_width = LabelWidth(width);
  std::string label = Clipped(LabelOf(row), label_width - 1);
  label.append(label_width - WidthOf(label), ' ');
  Line line{{.text = label, .strong = selected}};
  const auto add = [&line](char c, int colour, bool faint) {
    Chunk& last = line.back();
    if (line.size() > 1 && last.colour == colour && last.faint == faint) {
      last.text += c;
    } else {
      line.push_back({.text = std::string(1, c), .colour = colour, .faint = faint});
    }
  };
  const analyze::Columns columns = ColumnsOf(window, width);
  if (row.kind == TimelineRow::Kind::kMarks) {
    for (const analyze::InstantCell& cell : analyze::InstantCellsOf(model_, row, columns)) {
      const char c = cell.count == 0   ? ' '
                     : cell.count == 1 ? '|'
                     : cell.count < 10 ? static_cast<char>('0' + cell.count)
                                       : '+';
      add(c, -1, false);
    }
    return line;
  }
  for (const Span& cell : analyze::CellsOf(row, timeline_, columns)) {
    switch (cell.moment) {
      case Moment::kRange:
        add(legend_.LetterOf(cell.name), legend_.ColourOf(cell.name), false);
        break;
      case Moment::kNoRange:
        add(row.kind == TimelineRow::Kind::kWarp ? '.' : ' ', -1, true);
        break;
      case Moment::kUnknown:
        add('?', -1, true);
        break;
      case Moment::kAbsent:
        add(' ', -1, false);
    }
  }
  return line;
}

std::vector<Line> Picture::LegendLines(const Window& window, size_t width, size_t lines) const {
  const analyze::WindowTotals totals =
      analyze::TotalsOf(model_, cta_, timeline_, window.from, window.to);
  const uint32_t device = model_.launches[cta_.launch].device;
  const double ns_a_cycle = (model_.NsOf(device, cta_.sm, timeline_.end) -
                             model_.NsOf(device, cta_.sm, timeline_.begin)) /
                            static_cast<double>(timeline_.end - timeline_.begin);
  std::vector<Line> legend;
  const auto entry = [&](std::string key, int colour, const std::string& text) {
    legend.push_back({{.text = std::move(key), .colour = colour},
                      {.text = Clipped(fmt::format("  {}", text), width > 3 ? width - 3 : 0)}});
  };
  const auto time = [&](uint64_t cycles) {
    return Duration(static_cast<double>(cycles) * ns_a_cycle);
  };
  for (const analyze::NameTotal& total : totals.ranges) {
    entry(fmt::format(" {} ", legend_.LetterOf(total.name)), legend_.ColourOf(total.name),
          fmt::format("{}  {}, {}", Printable(model_.String(total.name)),
                      Counted(total.count, "time"), time(total.cycles)));
  }
  for (const analyze::NameTotal& total : totals.marks) {
    entry(
        " | ", -1,
        fmt::format("{}  {}", Printable(model_.String(total.name)), Counted(total.count, "mark")));
  }
  if (totals.no_range != 0) entry(" . ", -1, "no range open  " + time(totals.no_range));
  if (totals.unknown != 0) entry(" ? ", -1, "not known: lost  " + time(totals.unknown));
  if (legend.size() > lines && lines != 0) {
    const size_t more = legend.size() - lines + 1;
    legend.resize(lines - 1);
    legend.push_back({{.text = fmt::format("    and {} more", more), .faint = true}});
  }
  if (lines == 0) legend.clear();
  return legend;
}

uint32_t Picture::RangeAt(const TimelineRow& row, const Span& cell, uint64_t from,
                          uint64_t to) const {
  uint32_t found = trace::kNoRow;
  uint64_t most = 0;
  if (row.warp == trace::kNoRow || cell.moment != Moment::kRange) return found;
  const trace::Ranges& ranges = model_.ranges;
  const uint32_t first = model_.warps.first_range[row.warp];
  for (uint32_t range = first; range < first + model_.warps.range_count[row.warp]; ++range) {
    if (model_.declarations[ranges.declaration[range]].name != cell.name) continue;
    const uint64_t begin = std::max(from, ranges.begin_cycles[range]);
    const uint64_t end = std::min(to, ranges.end_cycles[range]);
    if (begin >= end || end - begin < most) continue;
    // Of those that cover as much, the innermost.
    if (end - begin == most && found != trace::kNoRow &&
        ranges.depth[range] < ranges.depth[found]) {
      continue;
    }
    most = end - begin;
    found = range;
  }
  return found;
}

std::string Picture::RangeText(uint32_t range) const {
  const trace::Ranges& ranges = model_.ranges;
  std::string text =
      fmt::format("{}: {}, from {}", Printable(model_.DeclarationName(ranges.declaration[range])),
                  Time(ranges.begin_cycles[range], ranges.end_cycles[range]),
                  Time(timeline_.begin, std::max(timeline_.begin, ranges.begin_cycles[range])));
  exporter::EventValues values(model_);
  for (const exporter::NamedValue& value : values.Of(ranges.begin_event[range])) {
    std::string number;
    exporter::AppendNumber(number, value.type, value.bits);
    text += fmt::format(", {} {}", Printable(value.name), number);
  }
  if ((ranges.flags[range] & trace::kRangeUnclosed) != 0) text += ", not closed";
  if ((ranges.flags[range] & trace::kRangeCrossed) != 0) text += ", crosses another";
  return text;
}

std::string Picture::MomentText(const Span& cell) const {
  switch (cell.moment) {
    case Moment::kAbsent:
      return "not there: before the warp's beginning, or behind its end";
    case Moment::kUnknown:
      return "not known: the records are lost";
    case Moment::kNoRange:
      return "no range is open";
    case Moment::kRange:
      return Printable(model_.String(cell.name));
  }
  return {};
}

std::string Picture::DetailOf(size_t number, const Window& window, size_t width,
                              size_t column) const {
  const TimelineRow& row = timeline_.rows[number];
  const analyze::Columns columns = ColumnsOf(window, width);
  const auto at = static_cast<uint32_t>(std::min<size_t>(column, columns.count - 1));
  const uint64_t from = columns.Begin(at), to = columns.Begin(at + 1);
  std::string text = LabelOf(row);
  text.erase(0, text.find_first_not_of(' '));
  if (row.kind == TimelineRow::Kind::kMarks) {
    std::vector<std::string> names;
    for (const analyze::Instant& instant : row.instants) {
      if (instant.cycles < from || instant.cycles >= to) continue;
      names.push_back(fmt::format("{} at {}",
                                  Printable(model_.DeclarationName(instant.declaration)),
                                  Time(timeline_.begin, instant.cycles)));
    }
    return fmt::format("{}: {}", text,
                       names.empty() ? "none here" : fmt::format("{}", fmt::join(names, ", ")));
  }
  const Span cell = analyze::CellsOf(row, timeline_, columns)[at];
  const uint32_t range = RangeAt(row, cell, from, to);
  return fmt::format("{}: {}", text, range == trace::kNoRow ? MomentText(cell) : RangeText(range));
}

}  // namespace iket::cli
