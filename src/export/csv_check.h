// csv_check.h: is a stream of bytes the table of csv.h?
//
// The columns are ours, every row has all of them, cells are quoted as RFC 4180 says and are UTF-8;
// numbers are numbers, kinds are known, what a kind must have is there, durations are the
// differences that they say to be and are not below zero. Private to check.cpp and its tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/check.h"

namespace iket::exporter {

class CsvCheck {
 public:
  // A cell that is longer is taken for damage; our longest has a few KiB.
  static constexpr size_t kMostCellBytes = 1 << 20;

  explicit CsvCheck(Faults& faults) : faults_(faults) {}

  // The bytes that follow those of the last call.
  void Feed(std::span<const std::byte> untrusted);
  // There are no more.
  void Finish();
  Counts counts() const;
  bool simulated() const { return simulated_; }

 private:
  void Take(char c);
  void EndCell();
  void EndRow();
  void CheckRow();
  void CheckNumbers();
  std::string_view Cell(std::string_view column) const;
  void Add(std::string_view kind, std::string text);

  Faults& faults_;
  std::vector<std::string> row_;
  std::string cell_;
  enum class State { kStart, kPlain, kQuoted, kQuoteInQuoted, kStopped } state_ = State::kStart;
  uint64_t offset_ = 0, row_offset_ = 0, rows_ = 0;
  uint64_t launches_ = 0, warps_ = 0, ranges_ = 0, marks_ = 0;
  bool simulated_ = false;
};

}  // namespace iket::exporter
