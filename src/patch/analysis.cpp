#include "patch/analysis.h"

#include <algorithm>
#include <cstring>

#include "patch/calls.h"
#include "patch/foreign_code.h"
#include "patch/reach.h"
#include "patch/trampoline.h"

namespace iket::patch {
namespace {

using sass::Instruction;

constexpr uint32_t kUnusableRegisters = 2;

bool NamesCtaYz(const Instruction& instruction) {
  if (instruction.opcode() != sass::kOpS2r && instruction.opcode() != sass::kOpS2ur) return false;
  const uint32_t sr = instruction.Bits(72, 8);
  return sr == static_cast<uint32_t>(sass::SpecialRegister::kCtaIdY) ||
         sr == static_cast<uint32_t>(sass::SpecialRegister::kCtaIdZ);
}

std::string At(uint32_t instruction) {
  return fmt::format("{:#x}", instruction * sass::kInstructionBytes);
}

// Four general registers, aligned to four, of which none is in `busy`, or nothing.
std::optional<uint8_t> FourRegisters(const sass::RegisterSet& busy, uint32_t usable) {
  // R0 and R1 are spared: R1 is the stack pointer of whoever looks at a stopped warp.
  for (uint32_t first = 4; first + 4 <= usable; first += 4) {
    if (!busy[first] && !busy[first + 1] && !busy[first + 2] && !busy[first + 3]) {
      return static_cast<uint8_t>(first);
    }
  }
  return std::nullopt;
}

// Chooses what an exit stub may clobber: registers that no instruction can still be reading then,
// because none reads them without a scoreboard, or because the stores that do are given one.
bool ChooseExitRegisters(CodeSection& section, uint32_t usable) {
  sass::RegisterSet by_stores, by_others;
  for (const Instruction& instruction : section.code) {
    (sass::CanGuardSources(instruction) ? by_stores : by_others) |=
        sass::UnguardedSources(instruction, section.generation);
  }
  auto registers = FourRegisters(by_stores | by_others, usable);
  if (!registers) registers = FourRegisters(by_others, usable);
  if (!registers) return false;
  section.exit_registers = *registers;
  for (uint32_t i = 0; i < section.code.size(); ++i) {
    if (!sass::CanGuardSources(section.code[i])) continue;
    const sass::RegisterSet sources = sass::UnguardedSources(section.code[i], section.generation);
    bool clobbered = false;
    for (uint32_t r = *registers; r < *registers + 4u; ++r) clobbered |= sources[r];
    if (clobbered) section.stores_to_guard.push_back(i);
  }
  return true;
}

// Registers are given in steps of so many; two of those that a kernel asks for it cannot use.
constexpr uint32_t kRegisterStep = 8;
constexpr uint32_t kMostRegisters = 248;

// What a patched kernel asks for: enough for its entry code, and, where another tool's sites may
// need some more, what it gets anyway. No other number of warps fits an SM by it.
uint32_t PatchedRegisters(const CodeSection& section) {
  const uint32_t registers = std::max(section.registers, kMinRegisters);
  const bool changes = std::any_of(
      section.code.begin(), section.code.end(),
      [](const Instruction& instruction) { return instruction.opcode() == sass::kOpSetMaxReg; });
  if (section.foreign_sites.empty() || changes || registers > kMostRegisters) return registers;
  return (registers + kRegisterStep - 1) / kRegisterStep * kRegisterStep;
}

// The first reason found why the section cannot be patched.
std::string Judge(const cubin::Image& image, CodeSection& section) {
  if (!sass::GenerationOf(image.sm())) {
    return fmt::format("code for {}: this version traces {}", image.ArchName(),
                       image.sm() < 80 ? "sm_80 and later" : "GPUs up to sm_121");
  }
  for (uint32_t i = 0; i < section.code.size(); ++i) {
    if (sass::MayUseReservedUniforms(section.code[i], section.generation)) {
      section.uses_reserved_uniforms = true;
      return fmt::format("the instruction at {} uses one of UR0..UR3, which marks need", At(i));
    }
  }
  if (!section.sites.all.empty() && !section.foreign_sites.empty()) {
    return "it has marks of iket's and of another tool";
  }
  if (!section.sites.problems.empty()) {
    const SiteProblem& problem = section.sites.problems.front();
    return fmt::format("mark at {} not understood: {}", At(problem.instruction), problem.reason);
  }
  // What the image states may be any number.
  uint32_t usable = std::min<uint32_t>(std::max(section.registers, kMinRegisters),
                                       sass::kRegisterZero + kUnusableRegisters) -
                    kUnusableRegisters;
  for (const Instruction& instruction : section.code) {
    if (instruction.opcode() != sass::kOpSetMaxReg) continue;
    const uint32_t count = static_cast<uint32_t>(instruction.low >> 32) & 0x3ff;
    usable = std::min(usable, count - std::min(count, kUnusableRegisters));
  }
  if (!ChooseExitRegisters(section, usable)) {
    return "no four registers are free at its exits: every one may still be read by a load or "
           "store";
  }
  if (!section.is_kernel()) return {};

  const Instruction& first = section.code.front();
  if (section.function().offset != 0) return "the kernel does not begin its section";
  if (!first.is_unguarded() || sass::EndsBasicBlock(first) || sass::HasRelativeTarget(first)) {
    return "its first instruction cannot be moved";
  }
  for (uint32_t i = 0; i < section.code.size(); ++i) {
    if (sass::HasRelativeTarget(section.code[i]) &&
        sass::RelativeTarget(section.code[i], uint64_t{i} * sass::kInstructionBytes,
                             section.generation) == 0) {
      return fmt::format("a branch at {} goes back to its first instruction", At(i));
    }
  }
  return {};
}

// Its sites of another tool's events, and what keeps them from being recorded.
void AnalyzeForeign(const cubin::Image& image, std::span<const uint64_t> entries,
                    const ForeignMarks& foreign, CodeSection& section) {
  ForeignSites found = FindForeignSites(section.code, entries, section.generation, foreign);
  section.foreign_sites = std::move(found.all);
  for (SiteProblem& problem : found.problems) {
    section.sites.problems.push_back(std::move(problem));
  }
  if (section.foreign_sites.empty()) return;
  for (const cubin::Section& relocations : image.sections()) {
    const bool is_for_this =
        relocations.info == section.section &&
        (relocations.type == cubin::kSectionRela || relocations.type == cubin::kSectionRel);
    if (!is_for_this) continue;
    for (const Relocation& relocation : Relocations(relocations)) {
      section.relocated.insert(static_cast<uint32_t>(relocation.offset / sass::kInstructionBytes));
    }
  }
  section.patched_registers = PatchedRegisters(section);
  for (SiteProblem& problem : ChooseRecorders(section, section.patched_registers)) {
    section.sites.problems.push_back(std::move(problem));
  }
}

}  // namespace

Result<std::vector<Instruction>> DecodeCode(std::span<const std::byte> untrusted) {
  if (untrusted.empty() || untrusted.size() % sass::kInstructionBytes != 0) {
    return Fail(ErrorKind::kBadInput, "{} bytes are not whole instructions of 16",
                untrusted.size());
  }
  std::vector<Instruction> code(untrusted.size() / sass::kInstructionBytes);
  std::memcpy(code.data(), untrusted.data(), untrusted.size());
  return code;
}

Result<CodeSection> AnalyzeCode(const cubin::Image& image, uint32_t section,
                                std::vector<cubin::Function> functions,
                                const std::map<uint32_t, uint32_t>& registers,
                                const ForeignMarks& foreign) {
  CodeSection result;
  result.section = section;
  // A kernel's range holds those of its device functions: it comes first.
  std::sort(
      functions.begin(), functions.end(), [](const cubin::Function& a, const cubin::Function& b) {
        return std::make_pair(!a.is_kernel, a.offset) < std::make_pair(!b.is_kernel, b.offset);
      });
  result.functions = std::move(functions);
  auto code = DecodeCode(image.sections()[section].data);
  if (!code) return FailIn(std::string(image.sections()[section].name), code.error());
  result.code = std::move(*code);

  std::vector<uint64_t> entries;
  for (const cubin::Function& function : result.functions) entries.push_back(function.offset);
  result.generation = sass::GenerationOf(image.sm()).value_or(sass::Generation::kHopper);
  result.sites = FindSites(result.code, entries, result.generation);
  for (uint32_t i = 0; i < result.code.size(); ++i) {
    const Instruction& instruction = result.code[i];
    if (instruction.opcode() == sass::kOpExit) result.exits.push_back(i);
    if (NamesCtaYz(instruction) ||
        (MayCallOrJump(instruction) &&
         MayLeaveSection(instruction, i, result.code.size(), result.generation))) {
      result.reads_cta_yz = true;
    }
  }
  if (const auto known = registers.find(result.function().symbol); known != registers.end()) {
    result.registers = known->second;
  }
  result.patched_registers = std::max(result.registers, kMinRegisters);
  if (foreign.any()) AnalyzeForeign(image, entries, foreign, result);
  result.refusal = Judge(image, result);
  return result;
}

}  // namespace iket::patch
