// analysis.h: one code section, decoded and judged: what is in it and whether it may be patched.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cubin/kernels.h"
#include "patch/foreign_site.h"
#include "patch/site.h"
#include "sass/operands.h"

namespace iket::patch {

struct CodeSection {
  uint32_t section = 0;
  std::vector<cubin::Function> functions;  // by offset; the kernel first where there is one
  std::vector<sass::Instruction> code;
  sass::Generation generation = sass::Generation::kHopper;
  Sites sites;
  std::vector<ForeignSite> foreign_sites;
  std::set<uint32_t> relocated;           // indices of instructions that a relocation changes
  std::vector<uint32_t> exits;            // indices of EXIT instructions
  bool reads_cta_yz = false;              // names SR_CTAID.Y or .Z, or calls code that may
  uint32_t registers = 0;                 // REGCOUNT of the kernel, or of the first function
  uint32_t patched_registers = 0;         // what it must be once it is patched
  uint32_t second = 1;                    // where a kernel goes on behind its first instruction
  uint8_t exit_registers = 0;             // first of four that exit code may clobber
  std::vector<uint32_t> stores_to_guard;  // that read those and have no scoreboard to say when
  bool uses_reserved_uniforms = false;    // may write one of UR0..UR3
  std::string refusal;                    // why it must not be patched; empty if it may

  bool is_kernel() const { return !functions.empty() && functions.front().is_kernel; }
  const cubin::Function& function() const { return functions.front(); }
};

// Decodes a section and decides. `functions` are those that lie in it, at least one; `registers`
// are cubin::RegisterCounts of the image, `foreign` what it declares of other tools' events.
Result<CodeSection> AnalyzeCode(const cubin::Image& image, uint32_t section,
                                std::vector<cubin::Function> functions,
                                const std::map<uint32_t, uint32_t>& registers,
                                const ForeignMarks& foreign = {});

// The instructions of a section; its size must be a multiple of 16.
Result<std::vector<sass::Instruction>> DecodeCode(std::span<const std::byte> untrusted);

}  // namespace iket::patch
