#include "patch/patch.h"

#include <algorithm>
#include <map>
#include <span>

#include "cubin/nvinfo.h"
#include "patch/analysis.h"
#include "patch/rewrite.h"
#include "patch/window_constant.h"

namespace iket::patch {
namespace {

// The code of an image, and which of it is to be patched.
struct Plan {
  std::vector<CodeSection> sections;

  bool Wants(const CodeSection& section) const {
    return section.refusal.empty() &&
           (!section.sites.all.empty() || (section.is_kernel() && shared_marks));
  }
  bool Shows(const CodeSection& section) const {
    return !section.sites.all.empty() || !section.sites.problems.empty() || Wants(section);
  }
  // Some marks are in sections of device functions, which any kernel may call.
  bool shared_marks = false;
};

// Marks in a device function's own section are only safe if every kernel has a trampoline.
void RefuseUnreachable(Plan& plan) {
  const auto refused =
      std::find_if(plan.sections.begin(), plan.sections.end(),
                   [](const CodeSection& s) { return s.is_kernel() && !s.refusal.empty(); });
  if (refused == plan.sections.end()) return;
  for (CodeSection& section : plan.sections) {
    if (section.is_kernel() || !section.refusal.empty()) continue;
    section.refusal = fmt::format("kernel {} can reach it and is not patched: {}",
                                  refused->function().name, refused->refusal);
  }
}

Result<Plan> MakePlan(const cubin::Image& image) {
  Plan plan;
  auto functions = cubin::Functions(image);
  if (!functions) return tl::unexpected(functions.error());
  std::map<uint32_t, std::vector<cubin::Function>> by_section;
  for (const cubin::Function& function : *functions) {
    // A symbol may call data a function; only what can be executed is code.
    if ((image.sections()[function.section].flags & cubin::kFlagExecute) == 0) continue;
    by_section[function.section].push_back(function);
  }
  const std::map<uint32_t, uint32_t> registers = cubin::RegisterCounts(image);
  for (auto& [section, members] : by_section) {
    auto analyzed = AnalyzeCode(image, section, std::move(members), registers);
    if (!analyzed) return tl::unexpected(analyzed.error());
    plan.sections.push_back(std::move(*analyzed));
  }
  for (const CodeSection& section : plan.sections) {
    const bool marked = !section.sites.all.empty() || !section.sites.problems.empty();
    if (marked && !section.is_kernel()) plan.shared_marks = true;
  }
  if (plan.shared_marks) RefuseUnreachable(plan);
  return plan;
}

FunctionReport Describe(const CodeSection& section) {
  FunctionReport report;
  report.name = std::string(section.function().name);
  report.is_kernel = section.is_kernel();
  report.refusal = section.refusal;
  report.reads_cta_yz = section.reads_cta_yz;
  report.registers = report.patched_registers = section.registers;
  for (const Site& site : section.sites.all) {
    report.sites.push_back({.offset = uint64_t{site.advance} * sass::kInstructionBytes,
                            .has_payload = site.has_payload()});
  }
  return report;
}

Result<ImageReport> Report(const cubin::Image& image, const Plan& plan) {
  ImageReport report;
  report.arch = image.ArchName();
  Declarations declarations = ReadDeclarations(image);
  report.declarations = std::move(declarations.all);
  report.problems = std::move(declarations.problems);
  report.foreign = FindForeignMarks(image);
  for (const CodeSection& section : plan.sections) {
    if (plan.Shows(section)) report.functions.push_back(Describe(section));
  }
  return report;
}

// Writes a rewritten section back, with everything that states its size or its exits.
Result<void> Store(cubin::Image& image, const CodeSection& section,
                   const RewrittenCode& rewritten) {
  const auto code = std::as_bytes(std::span(rewritten.code));
  std::vector<std::byte> bytes(code.begin(), code.end());
  const uint64_t size = bytes.size();
  if (auto done = image.SetSectionData(section.section, std::move(bytes)); !done) return done;
  if (section.is_kernel()) {
    if (auto done = image.SetSymbolSize(section.function().symbol, size); !done) return done;
  }
  const auto info = cubin::InfoSectionOf(image, section.section);
  if (!info || rewritten.exit_offsets.empty()) return {};
  const auto contents = image.sections()[*info].data;
  const auto old = cubin::FindAttribute(contents, cubin::AttributeCode::kExitOffsets);
  if (!old) return {};
  return image.SetSectionData(
      *info, cubin::ReplaceRecord(
                 contents, *old,
                 cubin::EncodeWords(cubin::AttributeCode::kExitOffsets, rewritten.exit_offsets)));
}

// Null if a kernel of this name has no number yet.
const uint32_t* KnownNumber(const Options& options, const std::string& name) {
  if (options.numbered == nullptr) return nullptr;
  const auto found = options.numbered->find(name);
  return found != options.numbered->end() ? &found->second : nullptr;
}

}  // namespace

Result<ImageReport> Inspect(const cubin::Image& image) {
  auto plan = MakePlan(image);
  if (!plan) return tl::unexpected(plan.error());
  return Report(image, *plan);
}

Result<Patched> PatchImage(const cubin::Image& image, const Options& options) {
  auto plan = MakePlan(image);
  if (!plan) return tl::unexpected(plan.error());
  auto report = Report(image, *plan);
  if (!report) return tl::unexpected(report.error());
  Patched result{.report = std::move(*report), .image = std::nullopt};

  const auto wanted = [&plan](const CodeSection& section) { return plan->Wants(section); };
  if (std::none_of(plan->sections.begin(), plan->sections.end(), wanted)) return result;

  cubin::Image edited = image;
  auto constant = AddWindowConstant(edited);
  if (!constant) return tl::unexpected(constant.error());

  uint32_t kernel = options.first_kernel;
  size_t shown = 0;
  for (const CodeSection& section : plan->sections) {
    if (!plan->Shows(section)) continue;
    FunctionReport& function = result.report.functions[shown++];
    if (!wanted(section)) continue;
    std::optional<EntryOptions> entry;
    if (section.is_kernel()) {
      const uint32_t* known = KnownNumber(options, function.name);
      function.number = known != nullptr ? *known : kernel++;
      if (function.number >= ring::kMaxKernels) {
        return Fail(ErrorKind::kSystem, "more than {} kernels in one process", ring::kMaxKernels);
      }
      entry = EntryOptions{.layout = options.layout,
                           .kernel = function.number,
                           .constant_offset = *constant,
                           .reads_cta_yz = section.reads_cta_yz};
      function.has_trampoline = true;
    }
    const RewrittenCode code = Rewrite(section, options.layout, entry ? &*entry : nullptr);
    if (auto done = Store(edited, section, code); !done) return tl::unexpected(done.error());
    if (section.registers < kMinRegisters) {
      function.patched_registers = kMinRegisters;
      for (const cubin::Function& member : section.functions) {
        if (!member.is_kernel && &member != &section.functions.front()) continue;
        if (auto done = cubin::SetRegisterCount(edited, member.symbol, kMinRegisters); !done) {
          return tl::unexpected(done.error());
        }
      }
    }
  }
  result.image = edited.Serialize();
  return result;
}

}  // namespace iket::patch
