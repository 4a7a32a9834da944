// stats.h: what took how long, as run-iket's --enable-stats says it: on the terminal and in
// run-iket.stats.json.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace iket::cli::run_iket {

inline constexpr char kStatsFile[] = "run-iket.stats.json";

class Stats {
  using Clock = std::chrono::steady_clock;

 public:
  // The phases, of which postprocess has the steps that follow it.
  enum Part : uint8_t {
    kTracker,
    kConfig,
    kProfiling,
    kPostprocess,
    kDecoding,
    kPerfetto,
    kJson,
    kPerfettoFile,
    kOther,
    kCleanup,
    kParts,
  };

  // Adds the time from its making to its end to a part.
  class Timer {
   public:
    Timer(Stats& stats, Part part) : stats_(stats), part_(part), begin_(Clock::now()) {}
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    void Failed() { failed_ = true; }

   private:
    Stats& stats_;
    Part part_;
    Clock::time_point begin_;
    bool failed_ = false;
  };

  [[nodiscard]] Timer Measure(Part part) { return Timer(*this, part); }
  // What there is nothing to do for.
  void Skip(Part part) { rows_[part].skipped = true; }

  // Says the whole run and its parts up to now.
  void Print() const;
  Result<void> Write(const std::string& folder) const;

 private:
  struct Row {
    std::optional<std::chrono::nanoseconds> time;
    bool failed = false;
    bool skipped = false;
  };
  const char* Status(Part part) const;
  std::string Json() const;

  Clock::time_point begin_ = Clock::now();
  std::array<Row, kParts> rows_;
};

}  // namespace iket::cli::run_iket
