// terminal.h: what goes to the person's terminal: results to standard output, the rest to standard
// error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/progress.h"

namespace iket::cli {

// Results. Buffered; whether they arrived is known after FlushOut().
void Print(std::string_view text);
// Fails if anything printed could not be written (disk full, closed pipe).
Result<void> FlushOut();

// Who speaks on standard error, for programs other than `iket`. `name` must stay.
void NameProgram(const char* name);
// One line on standard error, `iket: ...`, of printable text.
void PrintError(std::string_view message);
void PrintWarning(std::string_view message);

// The text, which may come from an untrusted file, in valid UTF-8: a control character, or a byte
// that belongs to no character, is `?`.
std::string Printable(std::string_view untrusted);

// A bar on standard error while long work is under way: only on a terminal, and only when the work
// takes longer than a moment. Behind it stands how long the rest takes if it goes on like this, and
// how much is done a second, where it is known what that is. Erased at the end.
class Progress {
 public:
  // `what` and `amount`: all of the work, "records" and how many; nothing: it is not known.
  explicit Progress(std::string label, std::string what = {}, uint64_t amount = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: draws at most ten times a second.
  void Update(uint64_t done, uint64_t total);
  // Update, for whoever does the work. Must not outlive the bar.
  iket::Progress Callback() {
    return [this](uint64_t done, uint64_t total) { Update(done, total); };
  }

 private:
  // " 3.1 M records/s, 0:12 left"; empty as long as nothing can be said.
  std::string Pace(double share, double seconds) const;

  std::string label_;
  std::string what_;
  uint64_t amount_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace iket::cli
