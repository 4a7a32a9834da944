// text.h: numbers and tables as a person reads them. The only place that decides how they look.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace iket::cli {

// "1,234,567".
std::string Count(uint64_t number);
// "1 launch", "2 launches"; `plural` where it is not singular + "s".
std::string Counted(uint64_t number, std::string_view singular, std::string_view plural = {});
// "4.2 MB", decimal as on disks; exact below 1,000.
std::string Bytes(uint64_t bytes);
// "32 KiB": for what is a power of two by its nature; as Bytes() where it is not.
std::string BinaryBytes(uint64_t bytes);
// "1.23 us", three significant digits, from ns to s.
std::string Duration(double ns);
// "0.05 %"; "0 %" if and only if `part` is 0.
std::string Share(uint64_t part, uint64_t whole);
// "20 launches by graphs, 18 with the number of their replay".
std::string GraphsText(uint64_t launches, uint64_t numbered);
// `text` as one word of a POSIX shell: as it is where that is safe, else in single quotes.
std::string ShellWord(std::string_view text);

// Columns with two blanks between them. The first column of a row is left-aligned, all others as
// the table says; widths follow from what is in it.
class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}

  void Row(std::vector<std::string> cells);
  // Every line starts with `indent` blanks and ends without any.
  std::string Text(size_t indent = 0) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace iket::cli
