// No bit of an instruction is overlooked: every word that nvdisasm reads as another instruction
// than its neighbour, one bit or one field away, is refused, or does something else.
//
// The words (tests/data/sim/words.txt) are one for each opcode and set of modifiers of the cubins
// that the build makes, and one for each form of operands beside. For each, every bit up to the
// control field is turned over, and fields of modifiers take all their values; nvdisasm says which
// of the results are other instructions; both are executed in several states of a warp, until one
// tells them apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "sass/known_bits.h"
#include "sim/testing_nvdisasm.h"
#include "sim/testing_one_warp.h"

namespace iket::sim::testing {
namespace {

constexpr uint32_t kBits = 105;  // up to the control field

sass::Instruction Flipped(sass::Instruction word, uint32_t bit) {
  (bit < 64 ? word.low : word.high) ^= uint64_t{1} << bit % 64;
  return word;
}

// True if the words differ in fields alone that their row calls without effect.
bool DifferWithoutEffect(sass::Instruction word, const sass::Instruction& other) {
  for (const sass::BitField& field : sass::ModifierFields(word)) {
    if (field.has_effect) continue;
    for (uint32_t bit = field.position; bit < field.position + field.width; ++bit) {
      if (word.Bits(bit, 1) != other.Bits(bit, 1)) word = Flipped(word, bit);
    }
  }
  return word == other;
}

// Points the address operands of a word into memory that is there.
void Aim(const sass::Instruction& word, const OneWarp& warp, uint32_t seed, OneWarp::State& state) {
  const sass::OpcodeRow* const row = sass::FindOpcode(word);
  const std::string mnemonic = row->mnemonic;
  const auto set = [&](uint32_t reg, uint32_t lane, uint64_t value, bool wide) {
    if (reg == sass::kRegisterZero) return;
    state.Register(reg, lane) = static_cast<uint32_t>(value);
    if (wide) state.Register(reg + 1, lane) = static_cast<uint32_t>(value >> 32);
  };
  const auto offset_of = [&](uint32_t at, uint32_t width) {
    return static_cast<uint64_t>(
        int64_t{static_cast<int32_t>(word.Bits(at, width) << (32 - width)) >> (32 - width)});
  };
  const uint32_t a = word.Bits(24, 8);
  for (const char* c = row->operands; *c != '\0'; ++c) {
    const bool global = *c == 'n' || *c == 'N';
    if (*c == '3') {  // [UR + offset] of shared memory
      state.uniform[word.Bits(24, 6)] = static_cast<uint32_t>(512 - offset_of(40, 24));
    }
    if (*c == 'g') {
      for (uint32_t i = 0; i < kLanes; ++i) {
        set(word.Bits(16, 8), i, 1024 + 16 * i - offset_of(44, 20), false);
      }
    }
    if (!global && *c != 'w' && *c != 'v') continue;
    uint64_t base = 1024;
    const bool generic =
        mnemonic == "LD" || mnemonic == "ST" || mnemonic == "ATOM" || mnemonic == "QSPC";
    if (global || generic) base += warp.global_address();
    if (generic && seed % 2 != 0) base = kSharedWindow + 1024;
    if (mnemonic == "LDL" || mnemonic == "STL") base = 256;
    const uint64_t offset = word.opcode() == 0xfae ? offset_of(32, 12) : offset_of(40, 24);
    const uint32_t uniform_at = *c == 'n' || *c == 'w' ? 32 : 64;
    const bool atomic = uniform_at == 64 && global && mnemonic[0] != 'S' && word.opcode() != 0xfae;
    const bool uniform = word.is_uniform_form() && !atomic && !(global && word.Bits(76, 1) != 0);
    const uint32_t ur = word.Bits(uniform_at, 6);
    uint64_t first = base - offset;
    if (uniform && ur != sass::kUniformRegisterZero) {
      const bool pair = global;
      const uint64_t part = pair && word.Bits(90, 1) == 0 ? first : 16 * (seed % 8);
      state.uniform[ur] = static_cast<uint32_t>(part);
      if (pair && ur < 62) state.uniform[ur + 1] = static_cast<uint32_t>(part >> 32);
      if (a == sass::kRegisterZero) state.uniform[ur] = static_cast<uint32_t>(first);
      first -= part;
    }
    for (uint32_t i = 0; i < kLanes; ++i) {
      set(a, i, first + 16 * (mnemonic[0] == 'A' ? i % 5 : i), global || generic);
    }
  }
  if (mnemonic == "QSPC") {  // addresses near the ends of the windows
    const uint64_t offset = offset_of(40, 24);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint64_t window = i % 5 == 4 ? kLocalWindow : kSharedWindow,
                     part = uint64_t{1} << i % 24;
      set(a, i, window + (seed % 2 != 0 ? kWindowBytes - part : part - 1) - offset, true);
    }
  }
  if (mnemonic == "MATCH" && seed % 2 != 0) {  // all the same
    for (uint32_t i = 0; i < kLanes && a != sass::kRegisterZero; ++i) state.Register(a, i) = 77;
  }
  if (mnemonic == "LDGSTS" && seed == 1) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      if (a != sass::kRegisterZero) state.Register(a, i) += i % 4;
    }
  }
  if (mnemonic == "BRA" && word.is_uniform_form()) {  // lanes that all run
    state.uniform[word.Bits(24, 6)] = seed % 2 != 0 ? state.active : kAllLanes;
  }
  // Compare and swap finds what it expects.
  if (std::string(row->operands).ends_with("bc") && mnemonic[0] == 'A') {
    const bool shared = mnemonic == "ATOMS" || (mnemonic == "ATOM" && seed % 2 != 0);
    const uint32_t b = word.Bits(32, 8);
    for (uint32_t i = 0; i < kLanes && b != sass::kRegisterZero; i += 2) {
      for (uint32_t half = 0; half < 2; ++half) {
        std::memcpy(&state.Register(b + half, i),
                    &(shared ? state.shared : state.global)[1024 + 16 * (i % 5) + 4 * half], 4);
      }
    }
  }
  if (mnemonic == "USGXT" || mnemonic == "UBMSK") {  // lengths that are none too long
    if (word.Bits(9, 3) == 1) state.uniform[word.Bits(32, 6)] = seed * 5 % 37;
  }
  // Registers that hold code addresses, or distances from the next instruction.
  if (mnemonic == "CALL" || mnemonic == "RET" || mnemonic == "BRX") {
    const bool absolute = word.opcode() == 0x343 || (mnemonic == "RET" && word.Bits(85, 1) != 0);
    const uint64_t displacement =
        static_cast<uint64_t>(sass::RelativeTarget(word, 0, sass::Generation::kHopper) -
                              int64_t{sass::kInstructionBytes});
    for (uint32_t i = 0; i < kLanes; ++i) {
      set(a, i, (absolute ? warp.code_base() : 0) + 16 * (9 + i % 2) - displacement, true);
    }
  }
  if (mnemonic == "SHFL") {  // segments and clamps that lanes stay inside of now and then
    for (uint32_t i = 0; i < kLanes; ++i) {
      if (word.opcode() == 0x389 || word.opcode() == 0x989) {
        set(word.Bits(64, 8), i, seed % 3 == 0 ? 0x1f : seed % 3 == 1 ? 0x1807 : 0x000, false);
      }
    }
  }
}

// Instructions that are others by their text, and do the same: a difference in bits `first` to
// `last` of a word whose text the expression finds.
struct Alike {
  const char* text;
  uint32_t first, last;
  const char* why;
};
constexpr Alike kAlike[] = {
    {"^(NOP|ERRBAR|CGAERRBAR|LDGDEPBAR|DEPBAR|CCTL|ENDCOLLECTIVE|PMTRIG|PREEXIT|ACQBULK)", 0, 15,
     "they do nothing here, and nothing under a guard"},
    {"^SYNCS[.]CCTL", 0, kBits, "no more does it"},
    {"^PMTRIG", 32, 47, "which event of the hardware's profiler"},
    {"^NANOSLEEP", 32, 63, "every sleep takes the same time"},
    {"^USETMAXREG", 32, 41, "registers are not counted"},
    {"^USETMAXREG.DEALLOC", 12, 15, "and giving them back does nothing"},
    {"^YIELD", 12, 15, "the warp yields if one lane does"},
    {"^EXIT P3", 12, 15, "under P3 twice"},
    {"^BSSY", 32, 63, "lanes meet at BSYNC, wherever it stands"},
    {"^BPT", 32, 63, "every trap ends the launch"},
    {"^LDG?[.].*desc", 32, 37, "the descriptor of global memory is not looked at"},
    {"desc.*desc|^(STG?|ATOMG?|REDG|LDGSTS)[.].*desc", 64, 69, "as above"},
    {"^U?(IADD3|LEA|IMAD)", 74, 74, "from no .X to one whose carries are !PT"},
    {"^HFMA2", 2, 2, "on whichever pipe"},
    {"^ST[GS]?[.]", 73, 73, "a signed byte is stored as an unsigned one"},
    {"^(ATOMG?|ATOMS|REDG)[.](E[.])?(ADD|INC|DEC|AND|OR|XOR|EXCH|CAS|CAST)", 73, 73,
     "the sign matters to minimum and maximum alone"},
    {"^REDUX( |[.](OR|XOR|SUM))", 73, 73, "as above"},
    {"^QSPC[.]E[.][SD]", 73, 73, "the cluster's shared memory is the CTA's"},
    {"SETP[.](EQ|NE)", 73, 73, "equal is equal, signed or not"},
    {"^U?ISETP", 72, 72, "from no .EX to one that continues PT, which equal numbers do"},
    {"^U?ISETP[.](GE|GT|LE|LT).*EX", 77, 77, "equal high words leave it to the low ones"},
    {"^(FSETP|DSETP|HSET2|HSETP2)[.](NAN|NUM)", 62, 80,
     "signs and flushing make no number of a NaN"},
    {"^FCHK", 32, 73, "exponents alone count"},
    {"^MUFU[.]COS", 62, 63, "an even function"},
    {"^MUFU.*NAN", 54, 63, "of a NaN that is another NaN"},
    {"^HADD2[.]F32", 60, 75, "the low half alone counts"},
    {"^FLO ", 63, 63, "the place of the first bit that is not the sign is that of its complement"},
    {"^(F2I|F2F|FRND)(?!.*(FLOOR|CEIL|RM|RP))", 80, 80, "denormals become zero, flushed or not"},
    {"^F2I.*U(32|64).*(TRUNC|FLOOR)", 79, 79, "negative numbers become zero"},
    {"^I2F.*U64.*R[MZ]", 78, 79, "down is toward zero"},
    {"^I2F([.]F64)?([.][SU](8|16|32)| )|^I2F[.]F64 |^F2F[.]F64[.]F32", 78, 79, "exact"},
    {"^U?LOP3.*0x3c, ", 64, 71, "a function of the first two operands"},
    {"^ULEA[.]HI[.]X[.]SX32", 75, 75, "by 0 or by 1, the high word is the sign"},
    {"^U?PRMT", 48, 63, "four selectors of four bits"},
    {"^SHFL", 40, 57, "lanes of a segment that immediates do not lead out of"},
    {"^U?FLO.*0x", 32, 63, "bits below the first"},
    {"^U?(SGXT|BMSK)", 32, 73, "32 bits or more are all"},
    {"^U?SHF[.]L", 73, 73, "what comes in from the right has no sign"},
    {"^U?SHF[.]R.*HI", 24, 31, "the high word shifted right is its own"},
    {"^U?SHF[.]L[.](?!.*HI)", 64, 71, "the low word shifted left is its own"},
    {"^SHF[.]L[.](?!.*HI).*(UR12|c.*)$", 9, 58, "as above, with the high word at bit 32"},
    {"^U?ISETP.*, UR", 24, 37, "registers that compare the same: a state has one value of each"},
    {"^FSETP.*UR12", 62, 63, "as above"},
    {"c.0x0. *.0x210.", 9, 58, "constants of the same effect: there is one value of each"},
    {"^SHF.*c.0x0", 73, 76, "a count that leaves nothing"},
    {"^(I2F|I2FP|I2I|F2F|F2I|F2FP|FRND|POPC)[^,]*, (R8, )?[-+0-9QI]", 32, 63,
     "numbers with the same result"},
    {"^U?SHF[.].*0x", 24, 75, "counts that saturate, or that wrap to the same"},
    {"^U?SHF", 73, 74, "types that saturate at the same count"},
};
std::string WhyAlike(const std::string& text, const sass::Instruction& word,
                     const sass::Instruction& other) {
  uint32_t first = kBits, last = 0;
  for (uint32_t bit = 0; bit < kBits; ++bit) {
    if (word.Bits(bit, 1) == other.Bits(bit, 1)) continue;
    first = std::min(first, bit);
    last = bit;
  }
  for (const Alike& alike : kAlike) {
    if (first >= alike.first && last <= alike.last &&
        std::regex_search(text, std::regex(alike.text))) {
      return alike.why;
    }
  }
  return "";
}

sass::Instruction WithField(sass::Instruction word, uint32_t at, uint32_t width, uint64_t value) {
  const uint64_t mask = ((uint64_t{1} << width) - 1) << at % 64;
  uint64_t& half = at < 64 ? word.low : word.high;
  half = (half & ~mask) | (value << at % 64 & mask);
  return word;
}

// The word with registers and predicates of its own for each operand, as far as it is known so:
// RZ, PT and the same register twice hide what a modifier does.
sass::Instruction Spread(sass::Instruction word) {
  const auto put = [&word](uint32_t at, uint32_t width, uint64_t value) {
    const sass::Instruction other = WithField(word, at, width, value);
    if (OneWarp::IsBound(other)) word = other;
  };
  const sass::OpcodeRow& row = *sass::FindOpcode(word);
  const uint32_t form = word.Bits(9, 3);
  const std::string operands = row.operands;
  const auto has = [&operands](const char* letters) {
    return operands.find_first_of(letters) != std::string::npos;
  };
  put(12, 4, sass::kPredicateTrue);
  if (has("dg")) put(16, 8, 20);
  if (has("D")) put(16, 6, 20);
  if (has("anNwv")) put(24, 8, 8);
  if (has("A3")) put(24, 6, 8);
  const bool at32 = form == 1 || !row.any_form;
  if (has("b") || (at32 && has("BWX"))) put(32, 8, 12);
  if (has("V") || (form == 1 && has("EY")) || (row.any_form && form >= 6)) put(32, 6, 12);
  if (has("cBC") || (form == 1 && has("Z"))) put(64, 8, 16);
  if (has("EFG")) put(64, 6, 16);
  if (has("pP")) put(81, 3, 1);
  if (has("qQ")) put(84, 3, 2);
  if (has("sS:") && word.Bits(87, 3) == 7) put(87, 3, 3);
  if (has("tT:") && word.Bits(77, 3) == 7) put(77, 3, 4);
  if (has("lL")) put(68, 3, 5);
  return word;
}

// Makes the first operand the second in some lanes, or one bit other in each: what comparisons
// need.
void Equalize(const sass::Instruction& word, const OneWarp& warp, uint32_t seed,
              OneWarp::State& state) {
  const bool each_bit = seed % 4 == 1;
  const sass::OpcodeRow& row = *sass::FindOpcode(word);
  if (!row.any_form) return;
  const bool wide = row.mnemonic[0] == 'D';
  const uint32_t form = word.Bits(9, 3), immediate = word.Bits(32, 32);
  const bool uniform = std::string(row.operands).find('A') != std::string::npos;
  const auto whole = [&](uint32_t lane, uint32_t half) -> uint32_t {
    if (form == 2 || form == 4) return !wide ? immediate : half == 0 ? 0 : immediate;
    if (form == 3 || form == 5) {
      return warp.constant(word.Bits(54, 5), (word.Bits(38, 16) & ~3u) + 4 * half);
    }
    if (form >= 6 || uniform) return state.uniform[(word.Bits(32, 6) + half) % 64];
    const uint32_t reg = word.Bits(32, 8);
    return reg == sass::kRegisterZero ? 0 : state.Register(reg + half, lane);
  };
  const auto second = [&](uint32_t lane, uint32_t half) {
    const uint32_t value = whole(lane, half);
    if (row.mnemonic[0] != 'H') return value;
    return (word.Bits(60, 2) == 3 ? value >> 16 : value & 0xffff) * 0x10001u;  // both halves
  };
  if (uniform) {
    if (std::string(row.operands).find('P') != std::string::npos) {
      state.uniform[word.Bits(24, 6)] = second(0, 0) + seed / 2 % 3 - 1;
    }
    return;
  }
  const uint32_t a = word.Bits(24, 8);
  if (a == sass::kRegisterZero) return;
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (!each_bit && i % 2 != 0) continue;
    for (uint32_t half = 0; half < (wide ? 2 : 1); ++half) {
      const uint32_t flip = each_bit && (!wide || half == seed / 4 % 2) ? 1u << i : 0;
      state.Register(a + half, i) = second(i, half) ^ flip;
    }
  }
}

std::vector<sass::Instruction> Words() {
  std::ifstream file(IKET_SOURCE_DIR "/tests/data/sim/words.txt");
  std::vector<sass::Instruction> words;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    sass::Instruction word;
    fields >> std::hex >> word.low >> word.high;
    words.push_back(word);
  }
  return words;
}

// The word, and those one bit or one field of modifiers away.
std::vector<sass::Instruction> Neighbours(const sass::Instruction& word) {
  std::vector<sass::Instruction> all;
  for (uint32_t bit = 0; bit < kBits; ++bit) all.push_back(Flipped(word, bit));
  for (const sass::BitField& field : sass::ModifierFields(word)) {
    if (field.width < 2 || field.width > 5) continue;
    sass::Instruction cleared = word;
    for (uint32_t i = 0; i < field.width; ++i) {
      if (word.Bits(field.position + i, 1) != 0) cleared = Flipped(cleared, field.position + i);
    }
    for (uint32_t value = 0; value < 1u << field.width; ++value) {
      sass::Instruction other = cleared;
      for (uint32_t i = 0; i < field.width; ++i) {
        if ((value >> i & 1) != 0) other = Flipped(other, field.position + i);
      }
      if (other != word) all.push_back(other);
    }
  }
  return all;
}

// The immediate of an arithmetic instruction, or its constant, may hide what a modifier does.
std::vector<sass::Instruction> WithImmediates(const sass::Instruction& word) {
  std::vector<sass::Instruction> all = {word};
  const sass::OpcodeRow* const row = sass::FindOpcode(word);
  const uint32_t form = word.Bits(9, 3);
  if (row == nullptr || !row->any_form) return all;
  if (form == 3 || form == 5) {
    for (uint32_t i = 0; i < 7; ++i) {
      all.push_back(WithField(word, 38, 16, OneWarp::kSpecialConstants + 4 * i));
    }
  }
  if (form != 2 && form != 4) return all;
  for (const uint32_t immediate : {0x3f812345u, 0x00812345u, 0x7f812345u, 0x80000005u, 0xbc01b481u,
                                   0x7ff87ff8u, 0xc0f12345u}) {
    all.push_back(WithField(word, 32, 32, immediate));
  }
  return all;
}

// The same immediate, or the same constant.
bool SameSource(const sass::Instruction& word, const sass::Instruction& other) {
  const uint32_t form = word.Bits(9, 3);
  if (form == 2 || form == 4) return word.low >> 32 == other.low >> 32;
  return word.Bits(38, 21) == other.Bits(38, 21);
}

class Sensitivity : public ::testing::Test {
 protected:
  // True if some state of the warp tells the words apart, or both with other immediates.
  bool Differ(const sass::Instruction& word, const sass::Instruction& other) {
    const auto words = WithImmediates(word), others = WithImmediates(other);
    const bool same_source = words.size() == others.size() && SameSource(word, other);
    for (size_t n = 0; n < (same_source ? words.size() : 1); ++n) {
      for (uint32_t i = 0; i < states_.size(); ++i) {
        OneWarp::State state = states_[i];
        Aim(words[n], warp_, i, state);
        if (i % 2 != 0) Equalize(words[n], warp_, i, state);
        OneWarp::State second = state;
        warp_.Execute(words[n], state);
        warp_.Execute(others[n], second);
        if (state != second) return true;
      }
    }
    return false;
  }
  static std::vector<OneWarp::State> States() {
    using Kind = OneWarp::Kind;
    std::vector<OneWarp::State> states;
    uint32_t seed = 0;
    for (const Kind kind :
         {Kind::kMixed, Kind::kMixed, Kind::kFloats, Kind::kSpecial, Kind::kSmall, Kind::kTwoValues,
          Kind::kOneValue, Kind::kOneValue, Kind::kSpecial, Kind::kMixed, Kind::kOneValue,
          Kind::kOneValue, Kind::kMixed, Kind::kSmall}) {
      states.push_back(OneWarp::Random(++seed, kind, true));
    }
    for (const Kind kind : {Kind::kMixed, Kind::kMixed, Kind::kTwoValues, Kind::kSpecial}) {
      states.push_back(OneWarp::Random(++seed, kind, false));
    }
    // Three uniform predicates take all their values.
    for (uint32_t i = 0; i < states.size(); ++i) {
      for (uint32_t p = 0; p < 3; ++p) {
        states[i].uniform_predicate[3 + p] = (i >> (p + 1) & 1) != 0;
        states[i].uniform_predicate[p] = !states[i].uniform_predicate[3 + p];
      }
    }
    return states;
  }

  OneWarp warp_;
  std::vector<OneWarp::State> states_ = States();
};

TEST_F(Sensitivity, OtherInstructionsAreRefusedOrDoSomethingElse) {
  const std::vector<sass::Instruction> words = Words();
  ASSERT_GT(words.size(), 500u);
  struct Pair {
    size_t word, other;  // in `all`
  };
  std::vector<sass::Instruction> all;
  std::vector<Pair> pairs;
  for (const sass::Instruction& word : words) {
    EXPECT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
    const size_t at = all.size();
    all.push_back(Spread(word));
    for (const sass::Instruction& other : Neighbours(all[at])) {
      pairs.push_back({at, all.size()});
      all.push_back(other);
    }
  }
  const std::vector<std::string> texts = Disassembled(all);
  size_t others = 0, refused = 0, alike = 0;
  for (const Pair& pair : pairs) {
    const sass::Instruction &word = all[pair.word], &other = all[pair.other];
    const std::string &text = texts[pair.word], &other_text = texts[pair.other];
    ASSERT_NE(text, "") << sass::Disassemble(word);
    if (other_text.empty() || other_text == text) continue;
    ++others;
    if (!OneWarp::IsBound(other)) {
      ++refused;
      continue;
    }
    const bool differ = Differ(word, other);
    if (DifferWithoutEffect(word, other)) {
      EXPECT_FALSE(differ) << text << "   has the effect of   " << other_text;
      continue;
    }
    if (differ) continue;
    ++alike;
    EXPECT_NE(WhyAlike(text, word, other), "") << fmt::format(
        "{}   does what   {}   does: {:016x}_{:016x}", text, other_text, other.low, other.high);
  }
  RecordProperty("words", static_cast<int>(words.size()));
  RecordProperty("others", static_cast<int>(others));
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("alike", static_cast<int>(alike));
  EXPECT_GT(others, 20000u);
  EXPECT_LT(alike, 2500u);
}

}  // namespace
}  // namespace iket::sim::testing
