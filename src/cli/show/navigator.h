// navigator.h: a CTA on a screen, and what keys do there.
//
// Knows nothing of terminals: keys come in, lines go out, so that tests can press what they like.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analyze/cta_timeline.h"
#include "analyze/ctas.h"
#include "cli/show/picture.h"
#include "cli/show/screen.h"
#include "trace/model.h"

namespace iket::cli {

// The launch that lasted longest, and of it the CTA with most events.
struct Choice {
  uint32_t launch = 0;  // row of Model::launches
  size_t cta = 0;       // of analyze::CtasOf
};
Choice ChooseCta(const trace::Model& model);

// "CTA 3 of 132 that are kept, launch 1 of 9; --kernel, --launch and --cta choose others".
std::string ChoiceText(const trace::Model& model, const Choice& choice, size_t ctas);

class Navigator {
 public:
  // The model must have a warp, and outlive this.
  Navigator(const trace::Model& model, const Choice& choice,
            const analyze::TimelineOptions& options);

  // As many lines as the screen has rows, none wider than it.
  std::vector<std::string> Lines(const Screen::Size& size);
  // False: it is over.
  bool Press(int key);

  const Window& window() const { return window_; }

 private:
  struct Shown;
  void Show();
  void Whole();
  void NextCta(int step);
  void NextLaunch(int step);
  void Zoom(bool in);
  void Pan(double share);
  void MoveCursor(int step);
  void Select(int step);
  void FindNext();
  bool PressInSearch(int key);
  size_t Columns() const;
  uint64_t CursorCycles() const;

  const trace::Model& model_;
  analyze::TimelineOptions options_;
  Choice choice_;
  std::vector<analyze::Cta> ctas_;
  std::shared_ptr<const Shown> shown_;
  Window window_;
  Screen::Size size_;
  size_t cursor_ = 0, selected_ = 0, top_ = 0;
  bool help_ = false, searching_ = false;
  std::string search_, message_;
};

}  // namespace iket::cli
