#include "sim/coverage.h"

#include <fmt/format.h>

#include <algorithm>

#include "cubin/image.h"
#include "cubin/kernels.h"
#include "sass/decode.h"
#include "sim/bind.h"

namespace iket::sim {
namespace {

// "file: function+0x120"; the innermost function where they nest.
std::string Place(std::string_view file, const std::vector<cubin::Function>& functions,
                  uint32_t section, uint64_t offset) {
  const cubin::Function* best = nullptr;
  for (const cubin::Function& function : functions) {
    if (function.section != section || offset < function.offset ||
        offset - function.offset >= function.size) {
      continue;
    }
    if (best == nullptr || function.size < best->size) best = &function;
  }
  if (best == nullptr) return fmt::format("{}: section {}+{:#x}", file, section, offset);
  return fmt::format("{}: {}+{:#x}", file, best->name, offset - best->offset);
}

bool IsCode(const cubin::Section& section) {
  return (section.flags & cubin::kFlagExecute) != 0 && !section.data.empty();
}

}  // namespace

Result<void> Coverage::Add(UntrustedBytes cubin, std::string_view file) {
  auto image = cubin::Image::Parse(cubin);
  if (!image) return FailIn(std::string(file), image.error());
  if (image->sm() != 90) {
    return Fail(ErrorKind::kBadInput, "{}: code for {}, not for sm_90", file, image->ArchName());
  }
  auto functions = cubin::Functions(*image);
  if (!functions) return FailIn(std::string(file), functions.error());
  for (const cubin::Section& section : image->sections()) {
    if (IsCode(section) && section.data.size() % sass::kInstructionBytes != 0) {
      return Fail(ErrorKind::kBadInput,
                  "{}: section {} of {} bytes is no whole number of instructions", file,
                  section.name, section.data.size());
    }
  }

  kernels_ += static_cast<uint64_t>(std::count_if(functions->begin(), functions->end(),
                                                  [](const auto& f) { return f.is_kernel; }));
  for (uint32_t number = 0; number < image->sections().size(); ++number) {
    const cubin::Section& section = image->sections()[number];
    if (!IsCode(section)) continue;
    const UntrustedBytes code(section.data);
    for (uint64_t at = 0; at < code.size(); at += sass::kInstructionBytes) {
      const sass::Instruction word{*code.Read<uint64_t>(at), *code.Read<uint64_t>(at + 8)};
      const bool known = sass::FindOpcode(word) != nullptr;
      const bool executes = Executes(BindInstruction(word, 0));
      ++words_;
      if (word.opcode() == sass::kOpNop) ++nops_;
      if (!known) ++unknown_;
      if (!executes) ++unsupported_;
      if (known && executes) continue;
      constexpr uint64_t kNoControl = (uint64_t{1} << sass::kControlShift) - 1;
      Refused& refused = refused_[{word.low, word.high & kNoControl}];
      if (refused.count++ != 0) continue;
      refused.lack = known ? Lack::kUnsupported : Lack::kUnknown;
      refused.word = word;
      refused.where = Place(file, *functions, number, at);
    }
  }
  return {};
}

std::vector<Coverage::Refused> Coverage::refused() const {
  std::vector<Refused> all;
  for (const auto& [word, refused] : refused_) all.push_back(refused);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return all;
}

}  // namespace iket::sim
