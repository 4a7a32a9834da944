#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace iket::cli {
namespace {

// Columns that text takes on a terminal, close enough: bytes of UTF-8 that are not continuations.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Three significant digits of a number of [1, 1000), without an exponent.
std::string ThreeDigits(double number) {
  const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", number, decimals);
}

}  // namespace

std::string Count(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string Counted(uint64_t number, std::string_view singular, std::string_view plural) {
  if (number == 1) return fmt::format("1 {}", singular);
  if (!plural.empty()) return fmt::format("{} {}", Count(number), plural);
  return fmt::format("{} {}s", Count(number), singular);
}

std::string GraphsText(uint64_t launches, uint64_t numbered) {
  return fmt::format("{} by graphs, {} with the number of their replay",
                     Counted(launches, "launch", "launches"), Count(numbered));
}

std::string Bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", ThreeDigits(value), kUnits[unit]);
}

std::string BinaryBytes(uint64_t bytes) {
  if (bytes == 0 || bytes % 1024 != 0) return Bytes(bytes);
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

std::string Duration(double ns) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  if (!std::isfinite(ns)) return "?";
  size_t unit = 0;
  while (std::abs(ns) >= 999.5 && unit + 1 < kUnits.size()) {
    ns /= 1000;
    ++unit;
  }
  if (std::abs(ns) >= 999.5) return fmt::format("{:.0f} {}", ns, kUnits[unit]);
  return fmt::format("{}{} {}", ns < 0 ? "-" : "", ThreeDigits(std::abs(ns)), kUnits[unit]);
}

std::string Share(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 0.01) return "< 0.01 %";
  return fmt::format("{:.2f} %", percent);
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./+=:,@%";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

void Table::Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::Text(size_t indent) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      if (i != 0) line += "  ";
      line += columns_[i] == Align::kRight ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace iket::cli
