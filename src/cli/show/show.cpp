// iket show: a CTA in the terminal, or as text.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/excerpt_options.h"
#include "cli/load.h"
#include "cli/show/navigator.h"
#include "cli/show/picture.h"
#include "cli/show/screen.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace iket::cli {
namespace {

constexpr size_t kNarrowest = 40, kWidest = 2000, kUsualWidth = 100;

struct Options {
  std::string file;
  ExcerptOptions excerpt;
  std::string window;
  std::string colour = "auto";
  size_t width = 0;  // 0: the terminal's
  bool plain = false, depths = false, no_marks = false;
};

bool WantsColours(const Options& options) {
  if (options.colour != "auto") return options.colour == "always";
  const char* const refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || refused[0] == 0);
}

// The cycle of the CTA's SM that is nearest to so many ns behind the CTA's beginning.
uint64_t CyclesAt(const trace::Model& model, const analyze::Cta& cta,
                  const analyze::CtaTimeline& timeline, double ns) {
  const uint32_t device = model.launches[cta.launch].device;
  const double begin = model.NsOf(device, cta.sm, timeline.begin);
  uint64_t low = timeline.begin, high = timeline.end;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (model.NsOf(device, cta.sm, middle) - begin < ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<Window> WindowOf(const Options& options, const trace::Model& model, const analyze::Cta& cta,
                        const analyze::CtaTimeline& timeline) {
  if (options.window.empty()) return Window{timeline.begin, timeline.end};
  const auto ns = ParseWindow(options.window);
  if (!ns) return tl::unexpected(ns.error());
  const Window window{
      CyclesAt(model, cta, timeline, ns->first),
      std::isfinite(ns->second) ? CyclesAt(model, cta, timeline, ns->second) : timeline.end};
  if (window.from < window.to) return window;
  return Fail(ErrorKind::kNothing, "show: the CTA has no cycle in --window {}: it lasts {}",
              options.window, Picture(model, cta, timeline).Time(timeline.begin, timeline.end));
}

Result<int> PrintCta(const Options& options, const trace::Model& model, const Choice& choice,
                     const analyze::TimelineOptions& rows) {
  const std::vector<analyze::Cta> ctas = analyze::CtasOf(model, choice.launch);
  const analyze::Cta& cta = ctas[choice.cta];
  const analyze::CtaTimeline timeline = analyze::TimelineOf(model, cta, rows);
  const auto window = WindowOf(options, model, cta, timeline);
  if (!window) return tl::unexpected(window.error());
  const Picture picture(model, cta, timeline);
  const size_t width = options.width != 0 ? options.width : kUsualWidth;
  const bool colours = WantsColours(options);
  const auto print = [&](const Line& line) {
    Print((colours ? ColouredText(line) : PlainText(line)) + "\n");
  };
  Print(picture.Title() + "\n");
  Print(ChoiceText(model, choice, ctas.size()) + "\n");
  if (const std::string losses = picture.Losses(); !losses.empty()) {
    Print("not whole: " + losses + "\n");
  }
  const analyze::Columns columns = picture.ColumnsOf(*window, width);
  if (!options.window.empty()) {
    Print(fmt::format("only {} of it, from {} on\n", picture.Time(window->from, window->to),
                      picture.Time(timeline.begin, window->from)));
  }
  Print(fmt::format("a column is {}, and shows what covers most of it\n\n",
                    picture.Time(columns.Begin(0), columns.Begin(1))));
  print(picture.Ruler(*window, width));
  for (size_t row = 0; row < timeline.rows.size(); ++row) print(picture.Row(row, *window, width));
  Print("\n");
  for (const Line& line : picture.LegendLines(*window, width, SIZE_MAX)) print(line);
  return kExitDone;
}

Result<int> Browse(const trace::Model& model, const Choice& choice,
                   const analyze::TimelineOptions& rows) {
  std::optional<int> signal;
  {
    auto screen = Screen::Open();
    if (!screen) return tl::unexpected(screen.error());
    Navigator navigator(model, choice, rows);
    do {
      screen->Draw(navigator.Lines(screen->size()));
    } while (navigator.Press(screen->Read()));
    signal = screen->signal();
  }
  if (signal) {  // it ends as the signal says, now that the terminal is as it was
    std::signal(*signal, SIG_DFL);
    raise(*signal);
  }
  return kExitDone;
}

Result<int> Show(const Options& options) {
  if (options.width != 0 && (options.width < kNarrowest || options.width > kWidest)) {
    return Fail(ErrorKind::kUsage, "show: --width: from {} to {}", kNarrowest, kWidest);
  }
  const auto choice = ExcerptChoice::Make(options.excerpt);
  if (!choice) return tl::unexpected(choice.error());
  if (!options.window.empty()) {
    if (const auto window = ParseWindow(options.window); !window) {
      return tl::unexpected(window.error());
    }
  }
  auto loaded = Load(options.file);
  if (!loaded) return tl::unexpected(loaded.error());
  const int code = ReadCode(*loaded);
  if (loaded->model.warps.size() == 0) return code;
  if (choice->asks()) {
    auto part = choice->Of(loaded->model, loaded->path);
    if (!part) return tl::unexpected(part.error());
    loaded->model = std::move(*part);
  }
  const trace::Model& model = loaded->model;
  const Choice chosen = ChooseCta(model);
  if (analyze::CtasOf(model, chosen.launch).empty()) {
    return Fail(ErrorKind::kNothing, "{}: of no warp it is known which CTA it was of",
                options.file);
  }
  const analyze::TimelineOptions rows{.depths = options.depths, .marks = !options.no_marks};
  const bool browses = !options.plain && options.width == 0 && options.window.empty() &&
                       isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  auto done = browses ? Browse(model, chosen, rows) : PrintCta(options, model, chosen, rows);
  if (!done) return done;
  return std::max(code, *done);
}

}  // namespace

void AddShow(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "show", "A CTA in the terminal: warps as rows, time across; as text where there is none");
  sub->add_option("file", options->file, "Capture (.iketcap), or run of run-iket (iket.data.json)")
      ->required()
      ->type_name("FILE");
  sub->add_option("--kernel", options->excerpt.kernels,
                  "Launches of kernels in whose name this is found")
      ->type_name("REGEX");
  sub->add_option("--launch", options->excerpt.launches, "Launches by number: 3,5:8")
      ->type_name("LIST");
  sub->add_option("--cta", options->excerpt.cta,
                  "The CTA at this place; by default that with most "
                  "events, of the launch that lasted longest")
      ->type_name("X,Y,Z");
  sub->add_option("--window", options->window,
                  "As text, this time of the CTA alone, from its beginning: 2us..3us")
      ->type_name("TIME");
  sub->add_flag("--depths", options->depths,
                "A row for each depth of nested ranges, not the innermost alone");
  sub->add_flag("--no-marks", options->no_marks, "No rows of marks");
  sub->add_flag("--plain", options->plain, "Text, also on a terminal");
  sub->add_option("--width", options->width, "As text, so many columns; by default 100")
      ->type_name("COLUMNS");
  sub->add_option("--colour", options->colour,
                  "Of text: auto (on a terminal, unless NO_COLOR is set), always, never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""));
  sub->footer(
      "On a terminal: arrows move, + and - zoom, n and p are the next CTA and the one before,\n"
      "/ searches, ? says all keys, q ends.\n\n"
      "Letters and colours are names, as the legend below says; . no range is open, ? lost.");
  sub->callback([options, &run] { run = [options] { return Show(*options); }; });
}

}  // namespace iket::cli
