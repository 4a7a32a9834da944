#include "cli/show/navigator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.h"
#include "cli/text.h"

namespace iket::cli {
namespace {

constexpr size_t kLeastColumns = 40, kLeastRows = 8;
constexpr size_t kMostLegendLines = 8;
constexpr int kCtrlC = 3, kEnter = '\r', kBackspace = 127, kDelete = 8;

constexpr const char* kHelp[] = {
    "left, right, h, l    the cursor; it takes the picture along at the edge",
    "up, down, k, j       the row; Page Up, Page Down by ten; Home, End",
    "+, w                 in, around the cursor",
    "-, s                 out",
    "a, d                 to and fro by a quarter",
    "0                    the whole CTA",
    "n, p                 the next CTA of the launch, and the one before",
    "], [                 the next launch, and the one before",
    "t                    a row for each depth, or the innermost range alone",
    "m                    marks, or none",
    "/ NAME               the next range or mark of that name in the row; Enter alone: again",
    "?                    this",
    "q, Ctrl-C, Escape    end",
};

double LengthOf(const trace::Launch& launch) { return launch.last_ns - launch.first_ns; }

}  // namespace

struct Navigator::Shown {
  Shown(const trace::Model& model, const analyze::Cta& chosen,
        const analyze::TimelineOptions& options)
      : cta(chosen),
        timeline(analyze::TimelineOf(model, cta, options)),
        picture(model, cta, timeline) {}
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  const analyze::Cta cta;
  const analyze::CtaTimeline timeline;
  const Picture picture;
};

Choice ChooseCta(const trace::Model& model) {
  Choice best;
  double longest = -1;
  for (uint32_t launch = 0; launch < model.launches.size(); ++launch) {
    if (LengthOf(model.launches[launch]) <= longest) continue;
    const std::vector<analyze::Cta> ctas = analyze::CtasOf(model, launch);
    if (ctas.empty()) continue;
    longest = LengthOf(model.launches[launch]);
    const auto most = std::ranges::max_element(ctas, {}, &analyze::Cta::events);
    best = {.launch = launch, .cta = static_cast<size_t>(most - ctas.begin())};
  }
  return best;
}

std::string ChoiceText(const trace::Model& model, const Choice& choice, size_t ctas) {
  return fmt::format(
      "CTA {} of {} that are kept, launch {} of {}; --kernel, --launch and --cta choose others",
      Count(choice.cta + 1), Count(ctas), Count(uint64_t{choice.launch} + 1),
      Count(model.launches.size()));
}

Navigator::Navigator(const trace::Model& model, const Choice& choice,
                     const analyze::TimelineOptions& options)
    : model_(model),
      options_(options),
      choice_(choice),
      ctas_(analyze::CtasOf(model, choice.launch)) {
  Show();
  Whole();
}

void Navigator::Show() {
  shown_ = std::make_shared<const Shown>(model_, ctas_[choice_.cta], options_);
  selected_ = std::min(selected_, shown_->timeline.rows.size() - 1);
}

void Navigator::Whole() { window_ = {shown_->timeline.begin, shown_->timeline.end}; }

void Navigator::NextCta(int step) {
  const auto next = static_cast<int64_t>(choice_.cta) + step;
  if (next < 0 || next >= static_cast<int64_t>(ctas_.size())) {
    message_ =
        step < 0 ? "this is the first CTA of the launch" : "this is the last CTA of the launch";
    return;
  }
  choice_.cta = static_cast<size_t>(next);
  Show();
  Whole();
}

void Navigator::NextLaunch(int step) {
  for (int64_t next = int64_t{choice_.launch} + step;
       next >= 0 && next < static_cast<int64_t>(model_.launches.size()); next += step) {
    std::vector<analyze::Cta> ctas = analyze::CtasOf(model_, static_cast<uint32_t>(next));
    if (ctas.empty()) continue;
    ctas_ = std::move(ctas);
    choice_ = {.launch = static_cast<uint32_t>(next), .cta = 0};
    Show();
    Whole();
    return;
  }
  message_ = step < 0 ? "this is the first launch" : "this is the last launch";
}

size_t Navigator::Columns() const {
  return shown_->picture.ColumnsOf(window_, size_.columns).count;
}

uint64_t Navigator::CursorCycles() const {
  const analyze::Columns columns = shown_->picture.ColumnsOf(window_, size_.columns);
  return columns.Begin(static_cast<uint32_t>(std::min(cursor_, size_t{columns.count} - 1)));
}

void Navigator::Zoom(bool in) {
  const uint64_t at = CursorCycles(), width = window_.to - window_.from;
  const uint64_t wanted = in ? std::max<uint64_t>(width / 2, 8) : width * 2;
  const uint64_t whole = shown_->timeline.end - shown_->timeline.begin;
  if (wanted >= whole) return Whole();
  // What is under the cursor stays there.
  const double share = static_cast<double>(at - window_.from) / static_cast<double>(width);
  const auto before = static_cast<uint64_t>(share * static_cast<double>(wanted));
  uint64_t from = at > shown_->timeline.begin + before ? at - before : shown_->timeline.begin;
  from = std::min(from, shown_->timeline.end - wanted);
  window_ = {from, from + wanted};
}

void Navigator::Pan(double share) {
  const uint64_t width = window_.to - window_.from;
  const auto step =
      std::max<int64_t>(1, static_cast<int64_t>(std::abs(share) * static_cast<double>(width)));
  const int64_t room = share < 0 ? static_cast<int64_t>(window_.from - shown_->timeline.begin)
                                 : static_cast<int64_t>(shown_->timeline.end - window_.to);
  const int64_t moved = std::min(step, room) * (share < 0 ? -1 : 1);
  window_.from += static_cast<uint64_t>(moved);
  window_.to += static_cast<uint64_t>(moved);
}

void Navigator::MoveCursor(int step) {
  const size_t columns = Columns();
  cursor_ = std::min(cursor_, columns - 1);
  if (step < 0 && cursor_ == 0) return Pan(-1.0 / 8);
  if (step > 0 && cursor_ + 1 >= columns) return Pan(1.0 / 8);
  cursor_ += static_cast<size_t>(step);
}

void Navigator::Select(int step) {
  const auto last = static_cast<int64_t>(shown_->timeline.rows.size()) - 1;
  selected_ =
      static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(selected_) + step, 0, last));
}

// The next begin behind the cursor, in the selected row, of what is called so; from the row's
// beginning if there is none.
void Navigator::FindNext() {
  const analyze::TimelineRow& row = shown_->timeline.rows[selected_];
  std::vector<uint64_t> begins;
  const auto add = [&](trace::StringId name, uint64_t cycles) {
    if (model_.String(name).find(search_) != std::string::npos) begins.push_back(cycles);
  };
  uint64_t at = shown_->timeline.begin;
  for (const analyze::Span& span : row.spans) {
    if (span.moment == analyze::Moment::kRange) add(span.name, at);
    at = span.end;
  }
  for (const analyze::Instant& instant : row.instants) {
    add(model_.declarations[instant.declaration].name, instant.cycles);
  }
  if (begins.empty()) {
    message_ = fmt::format("nothing in this row is called {}", Printable(search_));
    return;
  }
  const analyze::Columns columns = shown_->picture.ColumnsOf(window_, size_.columns);
  const auto column = static_cast<uint32_t>(std::min(cursor_, size_t{columns.count} - 1));
  auto next = std::ranges::lower_bound(begins, columns.Begin(column + 1));
  if (next == begins.end()) {
    next = begins.begin();
    message_ = "from the beginning again";
  }
  const uint64_t width = window_.to - window_.from;
  if (*next < window_.from || *next >= window_.to) {
    const uint64_t latest = shown_->timeline.end - width;
    const uint64_t from = *next - std::min(*next - shown_->timeline.begin, width / 4);
    window_.from = std::min(from, latest);
    window_.to = window_.from + width;
  }
  const analyze::Columns now = shown_->picture.ColumnsOf(window_, size_.columns);
  cursor_ = now.Of(*next);
  // Where it covers less than half of the column in which it begins, the next one shows it.
  const std::vector<analyze::Span> cells = analyze::CellsOf(row, shown_->timeline, now);
  const auto shows_it = [&](size_t cell) {
    return cell < cells.size() && cells[cell].moment == analyze::Moment::kRange &&
           model_.String(cells[cell].name).find(search_) != std::string::npos;
  };
  if (!shows_it(cursor_) && shows_it(cursor_ + 1)) ++cursor_;
}

bool Navigator::PressInSearch(int key) {
  if (key == kEnter || key == '\n') {
    searching_ = false;
    if (!search_.empty()) FindNext();
  } else if (key == kKeyEscape || key == kCtrlC) {
    searching_ = false;
  } else if (key == kBackspace || key == kDelete) {
    if (!search_.empty()) search_.pop_back();
  } else if (key >= ' ' && key < 0x100) {
    search_ += static_cast<char>(key);
  }
  return true;
}

bool Navigator::Press(int key) {
  message_.clear();
  if (key == kKeyClosed) return false;
  if (searching_) return PressInSearch(key);
  if (help_ && key != kKeyResized) {
    help_ = false;
    return key != 'q' && key != kCtrlC;
  }
  switch (key) {
    case 'q':
    case kCtrlC:
    case kKeyEscape:
      return false;
    case kKeyLeft:
    case 'h':
      MoveCursor(-1);
      break;
    case kKeyRight:
    case 'l':
      MoveCursor(1);
      break;
    case kKeyUp:
    case 'k':
      Select(-1);
      break;
    case kKeyDown:
    case 'j':
      Select(1);
      break;
    case kKeyPageUp:
      Select(-10);
      break;
    case kKeyPageDown:
      Select(10);
      break;
    case kKeyHome:
      cursor_ = 0;
      break;
    case kKeyEnd:
      cursor_ = Columns() - 1;
      break;
    case '+':
    case '=':
    case 'w':
      Zoom(true);
      break;
    case '-':
    case 's':
      Zoom(false);
      break;
    case 'a':
      Pan(-0.25);
      break;
    case 'd':
      Pan(0.25);
      break;
    case '0':
      Whole();
      break;
    case 'n':
      NextCta(1);
      break;
    case 'p':
      NextCta(-1);
      break;
    case ']':
      NextLaunch(1);
      break;
    case '[':
      NextLaunch(-1);
      break;
    case 't':
      options_.depths = !options_.depths;
      Show();
      break;
    case 'm':
      options_.marks = !options_.marks;
      Show();
      break;
    case '/':
      searching_ = true;
      search_.clear();
      break;
    case kEnter:
      if (!search_.empty()) FindNext();
      break;
    case '?':
      help_ = true;
      break;
    default:
      break;
  }
  return true;
}

std::vector<std::string> Navigator::Lines(const Screen::Size& size) {
  size_ = size;
  std::vector<std::string> lines;
  const auto plain = [&](const std::string& text) { lines.push_back(Clipped(text, size.columns)); };
  if (size.columns < kLeastColumns || size.rows < kLeastRows) {
    plain(fmt::format("{}x{} is too small: {}x{} at least", size.columns, size.rows, kLeastColumns,
                      kLeastRows));
    lines.resize(size.rows);
    return lines;
  }
  if (help_) {
    for (const char* const line : kHelp) {
      if (lines.size() + 1 < size.rows) plain(line);
    }
    lines.resize(size.rows - 1);
    plain("any key: back");
    return lines;
  }
  const Picture& picture = shown_->picture;
  const size_t rows = shown_->timeline.rows.size();
  plain(picture.Title());
  const std::string losses = picture.Losses();
  plain(losses.empty() ? ChoiceText(model_, choice_, ctas_.size()) : "not whole: " + losses);
  const size_t legend_room = std::min(kMostLegendLines, (size.rows - 6) / 3 + 1);
  const std::vector<Line> legend = picture.LegendLines(window_, size.columns, legend_room);
  // Title, what is lost, ruler, cursor, what is under it, keys.
  const size_t room = size.rows - 6 - legend.size();
  if (selected_ < top_) top_ = selected_;
  if (selected_ >= top_ + room) top_ = selected_ + 1 - room;
  top_ = std::min(top_, rows > room ? rows - room : 0);
  lines.push_back(ColouredText(picture.Ruler(window_, size.columns)));
  for (size_t i = top_; i < std::min(rows, top_ + room); ++i) {
    lines.push_back(ColouredText(picture.Row(i, window_, size.columns, i == selected_)));
  }
  cursor_ = std::min(cursor_, Columns() - 1);
  plain(std::string(picture.LabelWidth(size.columns) + cursor_, ' ') + "^");
  plain(picture.DetailOf(selected_, window_, size.columns, cursor_));
  for (const Line& line : legend) lines.push_back(ColouredText(line));
  lines.resize(size.rows - 1);
  const std::string more = rows > room ? fmt::format("rows {} to {} of {}; ", top_ + 1,
                                                     std::min(rows, top_ + room), rows)
                                       : "";
  plain(searching_         ? "/" + Printable(search_)
        : message_.empty() ? more + "? keys, q end; + and - zoom, arrows move, n the next CTA"
                           : message_);
  return lines;
}

}  // namespace iket::cli
