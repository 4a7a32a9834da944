#include "cubin/line_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cubin/elf.h"

namespace iket::cubin {
namespace {

// More than any compiler makes: what a lying table could make us keep.
constexpr size_t kMostRows = 1 << 24, kMostFiles = 1 << 20;
constexpr size_t kDeepest = 256;

// Reads one field behind the other; once something is missing, nothing more.
class Cursor {
 public:
  Cursor(UntrustedBytes bytes, uint64_t at) : bytes_(bytes), at_(at) {}

  template <typename T>
  T Take() {
    const std::optional<T> value = bytes_.Read<T>(at_);
    good_ = good_ && value.has_value();
    if (!good_) return T{};
    at_ += sizeof(T);
    return *value;
  }
  uint64_t TakeUleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; good_; shift += 7) {
      const auto byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
      if (shift > 128) good_ = false;
    }
    return good_ ? value : 0;
  }
  int64_t TakeSleb() {
    uint64_t value = 0;
    uint32_t shift = 0;
    uint8_t byte = 0x80;
    while (good_ && (byte & 0x80) != 0) {
      byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (shift > 128) good_ = false;
    }
    if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return good_ ? static_cast<int64_t>(value) : 0;
  }
  std::string_view TakeText() {
    const auto text = good_ ? bytes_.CString(at_) : std::nullopt;
    good_ = good_ && text.has_value();
    if (!good_) return {};
    at_ += text->size() + 1;
    return *text;
  }
  void GoTo(uint64_t at) { at_ = at; }
  uint64_t at() const { return at_; }
  bool good() const { return good_; }

 private:
  UntrustedBytes bytes_;
  uint64_t at_;
  bool good_ = true;
};

// Which section an address field of .debug_line is in, by the offset of the field.
std::map<uint64_t, uint32_t> SectionsOfAddresses(const Image& image, uint32_t lines) {
  std::map<uint64_t, uint32_t> sections;
  // Up to sm_89 without an addend.
  struct Relocation {
    uint64_t offset, info;
  };
  std::set<const std::byte*> read;  // sections may share their bytes
  for (const Section& section : image.sections()) {
    const bool with_addend = section.type == kSectionRela;
    if ((!with_addend && section.type != kSectionRel) || section.info != lines) continue;
    if (!read.insert(section.data.data()).second) continue;
    const UntrustedBytes bytes(section.data);
    const uint64_t step = sizeof(Relocation) + (with_addend ? sizeof(int64_t) : 0);
    for (uint64_t at = 0; bytes.Contains(at, step); at += step) {
      const Relocation relocation = *bytes.Read<Relocation>(at);
      const uint64_t symbol = relocation.info >> 32;
      if (symbol >= image.symbols().size() || !image.symbols()[symbol].has_section) continue;
      sections[relocation.offset] = image.symbols()[symbol].section;
    }
  }
  return sections;
}

}  // namespace

class LineReader {
 public:
  LineReader(UntrustedBytes bytes, std::map<uint64_t, uint32_t> sections, LineTable& table)
      : bytes_(bytes), sections_(std::move(sections)), table_(table) {}

  void Run() {
    for (uint64_t at = 0; at < bytes_.size();) {
      const auto length = bytes_.Read<uint32_t>(at);
      // 64-bit DWARF, which nobody makes, begins with a length of all ones.
      constexpr uint32_t kLongest = 0xfffffff0;
      if (!length || *length >= kLongest) return;
      const uint64_t end = at + sizeof *length + *length;
      const auto unit = bytes_.Slice(0, std::min<uint64_t>(end, bytes_.size()));
      if (!unit || !ReadUnit(*unit, at + sizeof *length)) return;
      at = end;
    }
  }

 private:
  static constexpr uint32_t kNowhere = ~0u;

  // The registers of DWARF's line machine.
  struct State {
    uint64_t offset = 0;
    uint64_t file = 1;
    uint64_t line = 1;  // modulo 2^64
    uint64_t caller = 0;
    uint64_t function = 0;
    uint32_t section = kNowhere;
  };

  bool ReadUnit(UntrustedBytes unit, uint64_t at) {
    Cursor in(unit, at);
    const auto version = in.Take<uint16_t>();
    if (version < 2 || version > 4) return true;  // of another kind: the next one may be ours
    const auto header_length = in.Take<uint32_t>();
    const uint64_t program = in.at() + header_length;
    least_step_ = in.Take<uint8_t>();
    if (version == 4) in.Take<uint8_t>();  // operations of an instruction
    in.Take<uint8_t>();                    // whether rows are statements
    line_base_ = in.Take<int8_t>();
    line_range_ = in.Take<uint8_t>();
    opcode_base_ = in.Take<uint8_t>();
    arguments_.clear();
    for (uint32_t i = 1; i < opcode_base_; ++i) arguments_.push_back(in.Take<uint8_t>());
    if (!in.good() || line_range_ == 0 || opcode_base_ == 0) return false;
    std::vector<std::string_view> folders = {""};
    for (auto folder = in.TakeText(); !folder.empty(); folder = in.TakeText()) {
      folders.push_back(folder);
    }
    first_file_ = table_.files_.size();
    for (auto name = in.TakeText(); !name.empty(); name = in.TakeText()) AddFile(in, folders, name);
    if (!in.good()) return false;
    in.GoTo(program);
    return Interpret(in, unit.size());
  }

  void AddFile(Cursor& in, const std::vector<std::string_view>& folders, std::string_view name) {
    const uint64_t folder = in.TakeUleb();
    in.TakeUleb();  // when it was changed
    in.TakeUleb();  // its size
    if (table_.files_.size() >= kMostFiles) return;
    const bool inside = !name.starts_with('/') && folder < folders.size();
    table_.files_.push_back({inside ? folders[folder] : "", name});
  }

  bool Interpret(Cursor& in, uint64_t end) {
    constexpr uint8_t kCopy = 1, kAdvancePc = 2, kAdvanceLine = 3, kSetFile = 4, kConstAddPc = 8,
                      kFixedAdvancePc = 9;
    State state;
    sequence_ = static_cast<uint32_t>(table_.rows_.size());
    while (in.good() && in.at() < end) {
      const auto opcode = in.Take<uint8_t>();
      if (opcode >= opcode_base_) {
        AddRow(state, opcode - opcode_base_);
        continue;
      }
      switch (opcode) {
        case 0:
          if (!Extended(in, state)) return false;
          break;
        case kCopy:
          Append(state);
          break;
        case kAdvancePc:
          state.offset += in.TakeUleb() * least_step_;
          break;
        case kAdvanceLine:
          state.line += static_cast<uint64_t>(in.TakeSleb());
          break;
        case kSetFile:
          state.file = in.TakeUleb();
          break;
        case kConstAddPc:
          state.offset += uint64_t{(255u - opcode_base_) / line_range_} * least_step_;
          break;
        case kFixedAdvancePc:
          state.offset += in.Take<uint16_t>();
          break;
        default:  // columns, blocks, and what is not known
          for (uint8_t i = 0; i < arguments_[opcode - 1u]; ++i) in.TakeUleb();
      }
    }
    return in.good();
  }

  bool Extended(Cursor& in, State& state) {
    constexpr uint8_t kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90;
    const uint64_t length = in.TakeUleb();
    const uint64_t begin = in.at();
    if (!in.good() || length > bytes_.size()) return false;
    if (length == 0) return true;
    switch (in.Take<uint8_t>()) {
      case kEndSequence:
        Append(state);
        EndSequence(state);
        state = State();
        break;
      case kSetAddress: {
        const auto section = sections_.find(in.at());
        if (section != sections_.end()) state.section = section->second;
        state.offset = in.Take<uint64_t>();
        break;
      }
      case kInlinedCall:
        state.caller = in.TakeUleb();
        state.function = in.TakeUleb();
        break;
      default:
        break;
    }
    in.GoTo(begin + length);
    return true;
  }

  // A special opcode: some bytes, some lines, a row.
  void AddRow(State& state, uint32_t opcode) {
    state.offset += uint64_t{opcode / line_range_} * least_step_;
    state.line += static_cast<uint64_t>(int64_t{line_base_} + opcode % line_range_);
    Append(state);
  }

  void Append(const State& state) {
    if (table_.rows_.size() >= kMostRows) return;
    const uint64_t file = first_file_ + state.file - 1;
    // Callers are before it: no chain ever ends where it began.
    const uint64_t number = table_.rows_.size() - sequence_ + 1;
    const bool known = state.file != 0 && file < table_.files_.size() && state.line != 0 &&
                       state.line <= 0xffffffff && state.caller < number;
    const LineTable::Row row{.offset = state.offset,
                             .file = known ? static_cast<uint32_t>(file) : 0,
                             .line = known ? static_cast<uint32_t>(state.line) : 0,
                             .caller = known ? static_cast<uint32_t>(state.caller) : 0,
                             .sequence = sequence_,
                             .function = static_cast<uint32_t>(state.function)};
    if (number > 1 && table_.rows_.back() == row) return;
    table_.rows_.push_back(row);
  }

  void EndSequence(const State& state) {
    const auto end = static_cast<uint32_t>(table_.rows_.size());
    const auto begin = table_.rows_.begin();
    const bool ascending =
        std::is_sorted(begin + sequence_, begin + end,
                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
    CorrectCallers(end);
    if (state.section != kNowhere && ascending && end - sequence_ > 1) {
      table_.sequences_.push_back({state.section, sequence_, end});
    }
    sequence_ = end;
  }

  // See the header. Rows of the sequence are numbered from 1.
  void CorrectCallers(uint32_t end) {
    constexpr uint32_t kSeveral = ~0u;
    std::map<std::array<uint32_t, 3>, uint32_t> certain;
    const auto key = [](const LineTable::Row& row) {
      return std::array{row.function, row.file, row.line};
    };
    for (uint32_t i = sequence_; i < end; ++i) {
      const LineTable::Row& row = table_.rows_[i];
      if (row.caller == 0 || row.caller != i - sequence_) continue;
      const auto [known, is_new] = certain.try_emplace(key(row), row.caller);
      if (!is_new && known->second != kSeveral && !SameLines(known->second, row.caller)) {
        known->second = kSeveral;
      }
    }
    for (uint32_t i = sequence_; i < end; ++i) {
      LineTable::Row& row = table_.rows_[i];
      if (row.caller == 0 || row.caller == i - sequence_) continue;
      const auto known = certain.find(key(row));
      if (known != certain.end() && known->second != kSeveral && known->second <= i - sequence_) {
        row.caller = known->second;
      } else {
        row.line = row.caller = 0;
      }
    }
  }

  // Whether two rows have the same lines all the way out.
  bool SameLines(uint32_t a, uint32_t b) const {
    for (size_t depth = 0; depth < kDeepest && a != b; ++depth) {
      if (a == 0 || b == 0) return false;
      const LineTable::Row& one = table_.rows_[sequence_ + a - 1];
      const LineTable::Row& other = table_.rows_[sequence_ + b - 1];
      if (one.file != other.file || one.line != other.line) return false;
      a = one.caller;
      b = other.caller;
    }
    return a == b;
  }

  UntrustedBytes bytes_;
  std::map<uint64_t, uint32_t> sections_;
  LineTable& table_;
  uint8_t least_step_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  std::vector<uint8_t> arguments_;  // of standard opcodes
  size_t first_file_ = 0;           // of the unit
  uint32_t sequence_ = 0;           // its first row
};

LineTable::LineTable(const Image& image) {
  const auto section = image.FindSection(".debug_line");
  if (!section) return;
  if (const auto strings = image.FindSection(".debug_str")) {
    strings_ = UntrustedBytes(image.sections()[*strings].data);
  }
  const UntrustedBytes bytes(image.sections()[*section].data);
  LineReader(bytes, SectionsOfAddresses(image, *section), *this).Run();
  std::ranges::sort(sequences_, {}, [](const Sequence& sequence) {
    return std::pair(sequence.section, sequence.first);
  });
}

std::vector<SourceLine> LineTable::At(uint32_t section, uint64_t offset) const {
  std::vector<SourceLine> lines;
  for (const Sequence& sequence :
       std::ranges::equal_range(sequences_, section, {}, &Sequence::section)) {
    const auto first = rows_.begin() + sequence.first, end = rows_.begin() + sequence.end;
    if (offset < first->offset || offset >= std::prev(end)->offset) continue;
    // The last of those that begin there: the others are what it was inlined into.
    const auto next = std::upper_bound(first, end, offset,
                                       [](uint64_t at, const Row& row) { return at < row.offset; });
    const Row* row = &*std::prev(next);
    while (row->line != 0 && lines.size() < kDeepest) {
      const File& file = files_[row->file];
      const std::string folder = file.folder.empty() ? "" : std::string(file.folder) + '/';
      lines.push_back({.file = folder + std::string(file.name), .line = row->line});
      if (row->caller == 0) break;
      lines.back().function = strings_.CString(row->function).value_or("");
      row = &rows_[row->sequence + row->caller - 1];
    }
    break;
  }
  return lines;
}

}  // namespace iket::cubin
