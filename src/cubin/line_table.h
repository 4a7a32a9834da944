// line_table.h: from an instruction to the source that it came from: .debug_line of -lineinfo.
//
// DWARF 2 to 4 with NVIDIA's extension: a row may name the row that it was inlined at, and so gives
// the whole chain of calls (extended opcodes 0x90: row and name of the function; 0x91: the name of
// the sequence's own). A table that is damaged is read up to the damage; what is left out is
// unknown, never wrong. Cost: one pass, 32 bytes a row.
//
// PTX names a caller by its file and line, so where a line is inlined several times (unrolled code)
// ptxas 13.0 takes the latest caller of that line for that of all. Only a row right behind its
// caller's has it for certain. The others get the caller of those that are in the same line of the
// same function, by its mangled name, if these have but one; otherwise nothing is known. Rows that
// say the same twice are one in ptxas's numbers. Copies of unrolled code may have no row of their
// own: they are in the row before them, and whoever asks must look at `function`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cubin/image.h"

namespace iket::cubin {

struct SourceLine {
  std::string file;  // as the compiler was given it
  uint32_t line = 0;
  std::string_view function{};  // mangled, of one that was inlined; good as long as the image
};

class LineTable {
 public:
  // Of an image without line information, one that knows nothing.
  explicit LineTable(const Image& image);

  // Where the instruction at `offset` of a code section stands, and where each function that was
  // inlined there was called, from the inside out. Empty: not known.
  std::vector<SourceLine> At(uint32_t section, uint64_t offset) const;
  bool empty() const { return sequences_.empty(); }

 private:
  friend class LineReader;

  struct Row {
    uint64_t offset = 0;  // in the code section
    uint32_t file = 0;    // in files_
    uint32_t line = 0;
    uint32_t caller = 0;    // the row that it was inlined at, 1 the first of its sequence; 0: none
    uint32_t sequence = 0;  // in rows_, where its sequence begins
    uint32_t function = 0;  // the name of the one that was inlined, in strings_

    bool operator==(const Row&) const = default;
  };
  // Rows [first, end) of one section, by offset; the last one only ends what is before it.
  struct Sequence {
    uint32_t section = 0;
    uint32_t first = 0, end = 0;
  };

  struct File {
    std::string_view folder, name;
  };

  std::vector<File> files_;
  std::vector<Row> rows_;
  std::vector<Sequence> sequences_;  // by section
  UntrustedBytes strings_;           // .debug_str
};

}  // namespace iket::cubin
