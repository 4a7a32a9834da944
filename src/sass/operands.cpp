#include "sass/operands.h"

#include <string_view>

#include "sass/decode.h"

namespace iket::sass {
namespace {

constexpr uint32_t kReservedUniforms = 4;  // UR0..UR3

// Instructions outside the uniform ALU that write a uniform register at bit 16.
bool WritesUniformFromElsewhere(uint32_t opcode) {
  switch (opcode) {
    case 0x7ac:     // LDCU
    case 0x8cb:     // CS2UR
    case 0x5e3:     // UTCATOMSWS
    case 0x9e3:     // the same
    case 0x2ca:     // R2UR
    case 0x3c2:     // the same
    case 0x3c4:     // REDUX
    case 0x2cc:     // CREDUX
    case 0x886:     // VOTEU
    case 0x9c3:     // S2UR
    case 0xab9:     // ULDC
    case 0xabb:     // the same, at an offset from a uniform register
    case 0x5b2:     // SYNCS.EXCH
    case kOpElect:  // a predicate and, optionally, the lane's number
      return true;
    default:
      return false;
  }
}

// The uniform ALU: base opcodes 0x080 to 0x0bf.
bool IsUniformBase(uint32_t base) { return base >= 0x080 && base <= 0x0bf; }

// Those of it that write a uniform register at bit 16: UISETP and UPLOP3 write predicates only.
// From sm_100 on it has more: what is uniform and no vector instruction with a uniform operand.
bool IsUniformAlu(const Instruction& instruction, Generation generation) {
  const uint32_t base = instruction.base_opcode();
  if (base < 0x080 && generation == Generation::kBlackwell) {
    const uint32_t form = instruction.Bits(9, 3);
    return instruction.is_uniform_form() && form != 6 && form != 7;
  }
  return IsUniformBase(base) && base != 0x08c && base != 0x09c;
}

// Memory, texture and surface instructions: base opcodes 0x160 to 0x1bf. From sm_100 on those of
// tensor memory are behind them.
bool IsMemory(const Instruction& instruction, Generation generation) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x160 && base <= (generation == Generation::kBlackwell ? 0x1ffu : 0x1bfu);
}

// LD, LDG, LDC, LDL, LDS.
bool IsLoad(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x180 && base <= 0x184;
}

// ST, STG, STL, STS.
bool IsStore(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x185 && base <= 0x188;
}

// Registers that a load fills, or the data operand of a store takes, by the width field of bits
// 73..75: 8 bits with and without sign, 16 likewise, 32, 64, 128.
uint32_t DataRegisters(const Instruction& instruction) {
  constexpr uint32_t kWidth32 = 4, kWidth64 = 5;
  const uint32_t width = instruction.Bits(73, 3);
  return width <= kWidth32 ? 1 : width == kWidth64 ? 2 : 4;
}

void Add(RegisterSet& set, uint32_t first, uint32_t count) {
  if (first == kRegisterZero) return;
  for (uint32_t i = first; i < first + count && i < kRegisterZero; ++i) set.set(i);
}

}  // namespace

// Only writers matter: a value that nobody writes cannot be relied on by anybody who reads it.
bool MayUseReservedUniforms(const Instruction& instruction, Generation generation) {
  if (!WritesUniformFromElsewhere(instruction.opcode()) && !IsUniformAlu(instruction, generation)) {
    return false;
  }
  return instruction.Bits(16, UniformBits(generation)) < kReservedUniforms;
}

bool IsMove(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base == 0x002 || (base == 0x024 && instruction.Bits(24, 8) == kRegisterZero);
}

std::optional<uint8_t> MovedUniform(const Instruction& instruction, Generation generation) {
  constexpr uint32_t kMov = 0xc02;   // R, UR
  constexpr uint32_t kImad = 0xe24;  // R, R, R, UR: both factors are RZ
  constexpr uint32_t kAllBytes = 15;
  const bool is_mov = instruction.opcode() == kMov && instruction.Bits(72, 4) == kAllBytes;
  const bool is_sum = instruction.opcode() == kImad && instruction.Bits(24, 8) == kRegisterZero &&
                      instruction.Bits(64, 8) == kRegisterZero && instruction.Bits(74, 2) == 0;
  if (!is_mov && !is_sum) return std::nullopt;
  return static_cast<uint8_t>(instruction.Bits(32, UniformBits(generation)));
}

std::optional<uint32_t> MovedConstant(const Instruction& instruction) {
  constexpr uint32_t kMov = 0x802, kImad = 0x424;  // R, imm and R, R, R, imm
  constexpr uint32_t kAllBytes = 15;
  const bool is_mov = instruction.opcode() == kMov && instruction.Bits(72, 4) == kAllBytes;
  const bool is_imad = instruction.opcode() == kImad && IsMove(instruction) &&
                       instruction.Bits(74, 2) == 0;  // no carry, no sign
  if (!is_mov && !is_imad) return std::nullopt;
  return instruction.Bits(32, 32);
}

namespace {

// What has uniform operands alone, or none: UTMALDG, UTMASTG, UTMACMDFLUSH, UTMACCTL, WARPGROUP.
bool HasNoRegisters(uint32_t base) {
  return base == 0x1b4 || base == 0x1b5 || base == 0x1b7 || base == 0x1b9 || base == 0x1c5;
}

// Does a row have an operand of one of these letters?
bool Has(std::string_view operands, std::string_view letters) {
  return operands.find_first_of(letters) != std::string_view::npos;
}

// A general register among the operands of a row that it reads.
bool HasSources(std::string_view operands) { return Has(operands, "abcnNwvgm"); }

// Of arithmetic: products of 64 bits, doubles and conversions have pairs.
bool HasPairs(uint32_t base) {
  return base == 0x025 || (base >= 0x027 && base <= 0x02b) || base >= 0x100;
}

}  // namespace

bool MayWriteRegister(const Instruction& instruction, uint32_t index) {
  constexpr uint32_t kMostRegisters = 8;  // of one result: DMMA, as far as rows are known
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) return true;
  const std::string_view operands(row->operands);
  if (operands.starts_with('c')) return true;  // textures have a second result
  if (!Has(operands, "d")) return false;
  const uint32_t first = instruction.Bits(16, 8);
  uint32_t count = kMostRegisters;
  if (row->any_form) count = HasPairs(instruction.base_opcode()) ? 2 : 1;
  if (instruction.opcode() == kOpCs2r) count = instruction.Bits(80, 1) != 0 ? 2 : 1;
  if (instruction.opcode() == kOpS2r) count = 1;
  if (IsLoad(instruction)) count = DataRegisters(instruction);
  return first != kRegisterZero && first <= index && index < first + count;
}

bool MayWritePredicate(const Instruction& instruction, uint32_t index) {
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) return !HasNoRegisters(instruction.base_opcode());
  const std::string_view operands(row->operands);
  if (operands.starts_with("Rai")) return true;  // R2P
  const auto writes = [&](char letter, uint32_t at) {
    return operands.find(letter) != std::string_view::npos && instruction.Bits(at, 3) == index;
  };
  return writes('p', 81) || writes('q', 84);
}

bool WritesRegister(const Instruction& instruction, uint32_t index) {
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) return false;
  const std::string_view operands(row->operands);
  if (operands.starts_with('c') || !Has(operands, "d")) return false;
  // The first of those that it may write is among them, whatever its width.
  const uint32_t first = instruction.Bits(16, 8);
  if (first == kRegisterZero) return false;
  if (first == index) return true;
  constexpr uint32_t kWideProduct = 0x025;
  const bool is_pair = row->any_form && instruction.base_opcode() == kWideProduct;
  return (is_pair || IsLoad(instruction)) && first < index && MayWriteRegister(instruction, index);
}

namespace {

// Registers that an operand of an instruction outside the ALU may have.
uint32_t MostOfOperand(uint32_t base) {
  switch (base) {
    case 0x003:  // P2R
    case 0x004:  // R2P
    case 0x0ca:  // R2UR
    case 0x1c2:  // the same
    case 0x189:  // SHFL
    case 0x1a1:  // MATCH
    case 0x1c4:  // REDUX
    case 0x148:  // WARPSYNC
      return 1;
    case 0x037:  // IMMA
    case 0x03c:  // HMMA
      return 4;
    default:
      return 8;
  }
}

}  // namespace

bool MayReadRegister(const Instruction& instruction, uint32_t index) {
  constexpr uint32_t kBaseLdsm = 0x03b, kBaseStsm = 0x044;
  const uint32_t base = instruction.base_opcode();
  if (IsUniformBase(base) || HasNoRegisters(base)) return false;
  const auto names = [&](uint32_t at, uint32_t most) {
    const uint32_t first = instruction.Bits(at, 8);
    return first != kRegisterZero && first <= index && index < first + most;
  };
  if (IsLoad(instruction)) return names(24, 2);
  if (base == kBaseLdsm) return names(24, 1);
  if (base == kBaseStsm) return names(24, 1) || names(32, 4);
  if (IsStore(instruction)) {
    return names(24, 2) || names(32, DataRegisters(instruction)) ||
           (!instruction.is_uniform_form() && names(64, 1));
  }
  const OpcodeRow* const row = FindOpcode(instruction);
  const std::string_view operands(row == nullptr ? "" : row->operands);
  if (row == nullptr || !row->any_form) {
    if (row != nullptr && !HasSources(operands)) return false;
    const uint32_t most = MostOfOperand(base);
    if (most == 1) {
      return names(24, 1) || (Has(operands, "b") && names(32, 1)) ||
             (Has(operands, "c") && names(64, 1));
    }
    return names(24, most) || names(32, most) || names(64, most);
  }
  // Arithmetic. What stands at 32 says the form.
  constexpr uint32_t kRegisterForm = 1;
  // Of IMAD.WIDE the factors have one register each; where the sum is a constant (form 3), a factor
  // has its place.
  constexpr uint32_t kWideProduct = 0x025, kConstantSum = 3;
  const bool is_product = base == kWideProduct;
  // Conversions that know 64 bits have codes of their own; one from 32 bits has one source.
  const bool is_narrow = base >= 0x100 && base < 0x110;
  const uint32_t most = HasPairs(base) && !is_product && !is_narrow ? 2 : 1;
  const uint32_t most_of_third = is_product && instruction.Bits(9, 3) != kConstantSum ? 2 : most;
  return (Has(operands, "a") && names(24, most)) ||
         (instruction.Bits(9, 3) == kRegisterForm && names(32, most)) ||
         (Has(operands, "BCcZ:") && names(64, most_of_third));
}

namespace {

// Matrix instructions of a warp group: a result and a sum of up to 128 registers, a factor of few.
bool IsGroupMatrix(uint32_t base) { return base >= 0x1f0 && base <= 0x1f3; }

}  // namespace

RegisterSet NamedRegisters(const Instruction& instruction) {
  constexpr uint32_t kGroupResult = 128, kGroupFactor = 8;
  RegisterSet named;
  const uint32_t base = instruction.base_opcode();
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) {
    if (IsGroupMatrix(base)) {
      Add(named, instruction.Bits(16, 8), kGroupResult);
      Add(named, instruction.Bits(24, 8), kGroupFactor);
      Add(named, instruction.Bits(64, 8), kGroupResult);
    } else if (!HasNoRegisters(base)) {
      named.set();
    }
    return named;
  }
  const std::string_view operands(row->operands);
  if (IsMemory(instruction, Generation::kHopper) && !operands.starts_with('c')) {
    // Results, addresses and data take four at most; what is uniform stands in the last place.
    constexpr uint32_t kMost = 4;
    const bool stores = Has(operands, "b");
    const bool is_uniform = instruction.is_uniform_form();
    if (Has(operands, "d")) Add(named, instruction.Bits(16, 8), kMost);
    Add(named, instruction.Bits(24, 8), kMost);
    if (stores || !is_uniform) Add(named, instruction.Bits(32, 8), kMost);
    if (!is_uniform) Add(named, instruction.Bits(64, 8), kMost);
    return named;
  }
  if (IsUniformBase(base)) return named;
  // As MayReadRegister and MayWriteRegister have it, for all registers at once.
  constexpr uint32_t kWidest = 8;
  const uint32_t most = !row->any_form ? kWidest : HasPairs(base) ? 2 : 1;
  if (operands.starts_with('c')) named.set();
  if (Has(operands, "d")) Add(named, instruction.Bits(16, 8), most);
  if (!row->any_form && !HasSources(operands)) return named;
  Add(named, instruction.Bits(24, 8), most);
  if (!row->any_form || instruction.Bits(9, 3) == 1) Add(named, instruction.Bits(32, 8), most);
  Add(named, instruction.Bits(64, 8), row->any_form ? 2 : kWidest);
  return named;
}

namespace {

// By the letters of its row; `all`: what any of its fields may name.
uint8_t NamedUniformPredicates(const Instruction& instruction, uint8_t all) {
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) return HasNoRegisters(instruction.base_opcode()) ? uint8_t{0} : all;
  const std::string_view operands(row->operands);
  uint32_t named = 0;
  const auto add = [&](uint32_t at) { named |= 1u << instruction.Bits(at, 3); };
  if (Has(operands, "P")) add(81);
  if (Has(operands, "Q")) add(84);
  if (Has(operands, "SLT")) add(87);
  if (Has(operands, "LT")) add(68);
  const uint32_t base = instruction.base_opcode();
  if (IsUniformBase(base)) {
    constexpr uint32_t kUp2ur = 0x083, kUr2up = 0x084;
    if (base == kUp2ur || base == kUr2up) return all;
    add(12);
    if (Has(operands, "XYH")) add(87);  // carries and signs of longer sums
    if (Has(operands, "X")) add(77);
  }
  return static_cast<uint8_t>(named & 0x7f);
}

}  // namespace

PredicateSet NamedPredicates(const Instruction& instruction) {
  constexpr uint32_t kAll = 0x7f;
  constexpr uint32_t kP2r = 0x003, kR2p = 0x004, kUp2ur = 0x083, kUr2up = 0x084;  // all at once
  uint32_t named = 0;
  // The guard, results, sources, and where PLOP3 and the like have more.
  for (const uint32_t at : {12u, 68u, 77u, 81u, 84u, 87u}) named |= 1u << instruction.Bits(at, 3);
  const uint32_t base = instruction.base_opcode();
  if (base == kP2r || base == kR2p || base == kUp2ur || base == kUr2up) named = kAll;
  const auto some = static_cast<uint8_t>(named & kAll);
  constexpr uint32_t kVoteu = 0x086;  // asks the lanes for theirs
  const bool asks_lanes = !IsUniformBase(base) || base == kVoteu;
  return {.vector = asks_lanes ? some : uint8_t{0},
          .uniform = NamedUniformPredicates(instruction, some)};
}

bool MayReadUniform(const Instruction& instruction, uint32_t index, Generation generation) {
  constexpr uint32_t kPair = 2, kDescriptor = 8;
  const uint32_t base = instruction.base_opcode();
  const bool is_known = FindOpcode(instruction) != nullptr;
  const bool is_control = base >= 0x140 && base <= 0x15f;
  if (is_known && !IsUniformAlu(instruction, generation) && !IsUniformBase(base) &&
      !instruction.is_uniform_form() && !is_control &&
      !WritesUniformFromElsewhere(instruction.opcode())) {
    return false;
  }
  // S2UR and R2UR take nothing of this file.
  if (instruction.opcode() == kOpS2ur || base == 0x0ca || base == 0x1c2) return false;
  const uint32_t most = is_known ? kPair : kDescriptor;
  for (const uint32_t at : {24u, 32u, 40u, 64u}) {
    const uint32_t first = instruction.Bits(at, UniformBits(generation));
    if (first <= index && index < first + most) return true;
    if (is_control) break;  // behind it is the target
  }
  return false;
}

bool MayWriteUniform(const Instruction& instruction, uint32_t index, Generation generation) {
  if (FindOpcode(instruction) != nullptr && !WritesUniformFromElsewhere(instruction.opcode()) &&
      !IsUniformAlu(instruction, generation)) {
    return false;
  }
  constexpr uint32_t kMost = 4;  // of one result
  const uint32_t first = instruction.Bits(16, UniformBits(generation));
  return first <= index && index < first + kMost;
}

bool WritesUniform(const Instruction& instruction, uint32_t index, Generation generation) {
  if (!instruction.is_unguarded()) return false;
  const uint32_t first = instruction.Bits(16, UniformBits(generation));
  constexpr uint32_t kWidth64 = 5;
  switch (instruction.base_opcode()) {
    case 0x082:  // UMOV
    case 0x090:  // UIADD3
    case 0x091:  // ULEA
    case 0x092:  // ULOP3
    case 0x099:  // USHF
    case 0x1c3:  // S2UR
      return first == index;
    case 0x0b9:  // ULDC
      return first == index || (instruction.Bits(73, 3) == kWidth64 && first + 1 == index);
    default:
      return false;
  }
}

bool IsIsetp(const Instruction& instruction) { return instruction.base_opcode() == 0x00c; }

uint32_t IsetpPredicate(const Instruction& instruction) { return instruction.Bits(81, 3); }

bool IsSimpleIsetp(const Instruction& instruction, Generation generation) {
  // The header's own condition before sm_90: that there is an SM at all.
  const bool combined = generation != Generation::kAmpere &&
                        (instruction.Bits(87, 3) != kPredicateTrue || instruction.Bits(90, 1) != 0);
  const bool second = instruction.Bits(84, 3) != kPredicateTrue;
  const bool extended = instruction.Bits(72, 1) != 0;  // .EX, of 64-bit comparisons
  return !combined && !second && !extended;
}

RegisterSet UnguardedSources(const Instruction& instruction, Generation generation) {
  RegisterSet set;
  if (!IsMemory(instruction, generation)) return set;
  const Control control = instruction.control();
  if (control.read_barrier != kNoBarrier || control.write_barrier != kNoBarrier) return set;
  Add(set, instruction.Bits(24, 8), 2);  // an address, 64 bits at most
  Add(set, instruction.Bits(32, 8), DataRegisters(instruction));
  if (!instruction.is_uniform_form()) Add(set, instruction.Bits(64, 8), 4);
  return set;
}

bool CanGuardSources(const Instruction& instruction) {
  const Control control = instruction.control();
  if (control.read_barrier != kNoBarrier || control.write_barrier != kNoBarrier) return false;
  switch (instruction.base_opcode()) {
    case 0x185:  // ST
    case 0x186:  // STG
    case 0x187:  // STL
    case 0x188:  // STS
    case 0x18e:  // RED
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sass
