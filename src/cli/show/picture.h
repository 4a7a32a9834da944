// picture.h: a CTA as lines of text: warps as rows, time across.
//
// The same picture for a terminal, in colours, and for a file, without: what a colour says a letter
// says, too. A column has what covers most of it; what was lost is drawn as lost, not as idle.
//
// Cost: as analyze/cta_timeline.h, and the cells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/cta_timeline.h"
#include "trace/model.h"

namespace iket::cli {

// Characters of one look. Text is printable.
struct Chunk {
  std::string text;
  int colour = -1;  // of the background: an index of the palette; -1 none
  bool faint = false, strong = false;
};
using Line = std::vector<Chunk>;

// How wide text is, and as much of it as fits; a character is one column wide.
size_t WidthOf(std::string_view text);
std::string Clipped(std::string_view text, size_t width);

// The line without its looks, and with them (SGR sequences, 24-bit colours).
std::string PlainText(const Line& line);
std::string ColouredText(const Line& line);

// Names of a CTA, each with a letter and a colour of its own as far as they suffice.
class Legend {
 public:
  Legend(const trace::Model& model, const analyze::CtaTimeline& timeline);

  char LetterOf(trace::StringId name) const;
  int ColourOf(trace::StringId name) const;

 private:
  struct Look {
    char letter = '#';
    int colour = 0;
  };
  std::map<trace::StringId, Look> looks_;
};

struct Window {
  uint64_t from = 0, to = 0;  // cycles of the SM, at least one
};

class Picture {
 public:
  // All must outlive it.
  Picture(const trace::Model& model, const analyze::Cta& cta, const analyze::CtaTimeline& timeline);

  // Of the columns of a line, those that labels take, and the rest for time.
  size_t LabelWidth(size_t width) const;
  size_t TimeWidth(size_t width) const { return width - LabelWidth(width); }
  analyze::Columns ColumnsOf(const Window& window, size_t width) const;

  // "kernel #3, CTA 0,0,0 on SM 17: 8 of 8 warps, 4.21 us (8,336 cycles)".
  std::string Title() const;
  // What of the CTA is not whole; "" if all is.
  std::string Losses() const;
  Line Ruler(const Window& window, size_t width) const;
  // `selected`: a row whose label stands out; -1 none.
  Line Row(size_t row, const Window& window, size_t width, bool selected = false) const;
  // What is in the window by name: letter, count, time; as many as fit in so many lines.
  std::vector<Line> LegendLines(const Window& window, size_t width, size_t lines) const;

  // What is at a column of a row, as a sentence.
  std::string DetailOf(size_t row, const Window& window, size_t width, size_t column) const;
  // "480 ns (950 cycles)".
  std::string Time(uint64_t cycles_from, uint64_t cycles_to) const;

 private:
  std::string LabelOf(const analyze::TimelineRow& row) const;
  std::string MomentText(const analyze::Span& cell) const;
  // The row of Model::ranges that a cell of this row shows; kNoRow if none.
  uint32_t RangeAt(const analyze::TimelineRow& row, const analyze::Span& cell, uint64_t from,
                   uint64_t to) const;
  std::string RangeText(uint32_t range) const;

  const trace::Model& model_;
  const analyze::Cta& cta_;
  const analyze::CtaTimeline& timeline_;
  Legend legend_;
  std::map<uint32_t, std::string> roles_;
  size_t label_width_ = 0;
};

}  // namespace iket::cli
