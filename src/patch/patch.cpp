#include "patch/patch.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "cubin/nvinfo.h"
#include "patch/analysis.h"
#include "patch/reach.h"
#include "patch/rewrite.h"
#include "patch/window_constant.h"

namespace iket::patch {
namespace {

bool HasRecordedSite(const CodeSection& section) {
  const auto is_recorded = [](const auto& site) { return !site.left_out; };
  return std::ranges::any_of(section.sites.all, is_recorded) ||
         std::ranges::any_of(section.foreign_sites, is_recorded);
}
bool HasSite(const CodeSection& section) {
  return !section.sites.all.empty() || !section.foreign_sites.empty();
}

// Calls `action` with each site, of either kind.
template <typename Section, typename Action>
void ForEachSite(Section& section, const Action& action) {
  for (auto& site : section.sites.all) action(site);
  for (auto& site : section.foreign_sites) action(site);
}

// The code of an image, and which of it is to be patched.
struct Plan {
  Declarations declarations;  // other tools' too
  ForeignMarks foreign;
  std::vector<CodeSection> sections;
  std::vector<Choice> choices;      // by section
  std::vector<Decision> decisions;  // by section

  bool Wants(size_t i) const { return decisions[i].patch; }
  // By itself: what it calls may want it patched too.
  bool HasMarks(size_t i) const {
    return HasRecordedSite(sections[i]) || !sections[i].sites.problems.empty() ||
           choices[i].unmarked;
  }
  bool Shows(size_t i) const { return HasSite(sections[i]) || HasMarks(i) || Wants(i); }
};

// Why a section is refused. `depth` bounds a chain of reasons; people read the first two.
std::string Explain(const Plan& plan, uint32_t i, int depth) {
  const Decision& decision = plan.decisions[i];
  const auto reason = [&] {
    return depth == 0 ? "that has reasons of its own" : Explain(plan, decision.other, depth - 1);
  };
  const auto name = [&] { return plan.sections[decision.other].function().name; };
  switch (decision.cause) {
    case Cause::kKernel:
      return fmt::format("kernel {} can reach it and is not patched: {}", name(), reason());
    case Cause::kBreaksState:
      return fmt::format("it can reach {}, which uses one of UR0..UR3, which marks need", name());
    case Cause::kUnrecordedEnds:
      return fmt::format("it can reach {}, which ends warps and is not patched: {}", name(),
                         reason());
    case Cause::kEntangled:
      return "its kernels and functions keep each other from being patched";
    case Cause::kNone:
      break;
  }
  return plan.sections[i].refusal;
}

// By its name, or by a row or category that it is in.
bool IsWanted(const decltype(Options::wants_event)& wants_event, const Declaration& declaration) {
  if (wants_event(declaration.name)) return true;
  return std::any_of(declaration.attributes.begin(), declaration.attributes.end(),
                     [&](const Attribute& attribute) {
                       const bool says_where = attribute.what == AttributeKind::kCategory ||
                                               attribute.what == AttributeKind::kGroup ||
                                               attribute.what == AttributeKind::kLane;
                       return says_where && !attribute.text.empty() && wants_event(attribute.text);
                     });
}

// Which declarations nobody wants, and which sites are therefore left as they are.
void LeaveOutEvents(const decltype(Options::wants_event)& wants_event, Plan& plan) {
  for (Declaration& declaration : plan.declarations.all) {
    if (declaration.kind == EventKind::kPop) continue;
    if (declaration.kind != EventKind::kSync) {
      declaration.left_out = !IsWanted(wants_event, declaration);
    }
  }
  // Pairs of clocks are for all the others.
  const bool any_wanted = std::any_of(
      plan.declarations.all.begin(), plan.declarations.all.end(), [](const Declaration& it) {
        return !it.left_out && it.kind != EventKind::kSync && it.kind != EventKind::kPop;
      });
  for (Declaration& declaration : plan.declarations.all) {
    if (declaration.kind == EventKind::kSync) declaration.left_out = !any_wanted;
  }
  // By id: of two names with one, a record may be either.
  struct Event {
    bool left_out = true;
    bool nests = false;  // is on the stack of pushes and pops
  };
  std::map<uint32_t, Event> events;
  for (const Declaration& declaration : plan.declarations.all) {
    Event& event = events[declaration.id];
    const bool is_pop = declaration.kind == EventKind::kPop;
    event.left_out &= is_pop || declaration.left_out;
    event.nests |= is_pop || declaration.kind == EventKind::kPush;
  }
  for (Declaration& declaration : plan.declarations.all) {
    declaration.left_out &= events[declaration.id].left_out;
  }
  const bool any_push = std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.second.nests && !event.second.left_out;
  });
  const auto event_of = [&events](const auto& site) {
    const auto found = events.find(site.event);
    return found != events.end() ? &found->second : nullptr;
  };
  bool all_known = true;
  for (const CodeSection& section : plan.sections) {
    ForEachSite(section, [&](const auto& site) { all_known &= event_of(site) != nullptr; });
  }
  for (CodeSection& section : plan.sections) {
    ForEachSite(section, [&](auto& site) {
      const Event* const event = event_of(site);
      site.left_out =
          event != nullptr && event->left_out && (!event->nests || (!any_push && all_known));
    });
  }
}

void DecideAll(const cubin::Image& image, Plan& plan) {
  std::vector<CallNode> nodes;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    const CodeSection& section = plan.sections[i];
    nodes.push_back({.is_kernel = section.is_kernel(),
                     .has_marks = plan.HasMarks(i),
                     .ends_warps = !section.exits.empty(),
                     .can_be_patched = section.refusal.empty(),
                     .breaks_ring_state = section.uses_reserved_uniforms,
                     .left_out = !plan.choices[i].wanted});
  }
  plan.decisions = Decide(nodes, FindCalls(image, plan.sections));
  constexpr int kReasons = 2;
  for (uint32_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.decisions[i].cause == Cause::kNone) continue;
    plan.sections[i].refusal = Explain(plan, i, kReasons);
  }
}

// Other tools' events, among our own from here on.
void AddForeign(Plan& plan) {
  for (Declaration& declaration : DeclarationsOf(plan.foreign)) {
    for (const Declaration& other : plan.declarations.all) {
      if (other.id != declaration.id) continue;
      plan.declarations.problems.push_back(fmt::format(
          "\"{}\" and \"{}\" have the same id {:#x}: rename one, they cannot be told apart",
          other.name, declaration.name, other.id));
    }
    plan.declarations.all.push_back(std::move(declaration));
  }
  std::ranges::stable_sort(plan.declarations.all, {}, &Declaration::id);
  if (plan.foreign.malformed != 0) {
    plan.declarations.problems.push_back(
        fmt::format("{} of another tool's declarations do not hold what their names say",
                    plan.foreign.malformed));
  }
}

Result<Plan> MakePlan(const cubin::Image& image, const Options& options = {}) {
  Plan plan;
  plan.declarations = ReadDeclarations(image);
  plan.foreign = FindForeignMarks(image, options.triggers);
  AddForeign(plan);
  const std::map<uint32_t, uint32_t> foreign_ids = RecordedIds(plan.declarations.all);
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
    auto analyzed = AnalyzeCode(image, section, std::move(members), registers, plan.foreign);
    if (!analyzed) return tl::unexpected(analyzed.error());
    for (ForeignSite& site : analyzed->foreign_sites) {
      const auto recorded = foreign_ids.find(site.id);
      if (recorded != foreign_ids.end()) site.event = recorded->second;
    }
    plan.choices.push_back(options.choose && analyzed->is_kernel()
                               ? options.choose(std::string(analyzed->function().name))
                               : Choice());
    plan.sections.push_back(std::move(*analyzed));
  }
  if (options.wants_event) LeaveOutEvents(options.wants_event, plan);
  DecideAll(image, plan);
  return plan;
}

FunctionReport Describe(const CodeSection& section, bool patched, bool has_marks) {
  FunctionReport report;
  report.name = std::string(section.function().name);
  report.is_kernel = section.is_kernel();
  // What nobody wants patched is not refused.
  const bool only_left_out = !patched && !has_marks && HasSite(section);
  if (!only_left_out) report.refusal = section.refusal;
  report.has_trampoline = patched && section.is_kernel();
  report.reads_cta_yz = section.reads_cta_yz;
  report.registers = report.patched_registers = section.registers;
  for (const Site& site : section.sites.all) {
    report.sites.push_back({.offset = uint64_t{site.advance} * sass::kInstructionBytes,
                            .has_payload = site.has_payload(),
                            .event = site.event,
                            .left_out = site.left_out});
    report.sites_left_out += site.left_out ? 1 : 0;
  }
  for (const ForeignSite& site : section.foreign_sites) {
    report.sites.push_back({.offset = uint64_t{site.trigger} * sass::kInstructionBytes,
                            .has_payload = site.payload_bytes != 0,
                            .event = site.event,
                            .left_out = site.left_out});
    report.sites_left_out += site.left_out ? 1 : 0;
  }
  return report;
}

std::array<uint32_t, 3> ClusterCtas(const cubin::Image& image, uint32_t section) {
  std::array<uint32_t, 3> ctas{};
  const auto info = cubin::InfoSectionOf(image, section);
  if (!info) return ctas;
  const auto attribute =
      cubin::FindAttribute(image.sections()[*info].data, cubin::AttributeCode::kCtaPerCluster);
  for (uint32_t axis = 0; attribute && axis < 3; ++axis) {
    ctas[axis] = attribute->Word(axis).value_or(0);
  }
  return ctas;
}

// Where sites and events stand, if the image has line tables.
void Locate(const cubin::Image& image, const Plan& plan, ImageReport& report) {
  const cubin::LineTable table(image);
  if (table.empty()) return;
  std::map<uint32_t, const Declaration*> events;
  for (const Declaration& declaration : report.declarations) {
    events.emplace(declaration.id, &declaration);
  }
  std::vector<LocatedSite> sites;
  size_t shown = 0;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    if (!plan.Shows(i)) continue;
    for (const SiteReport& site : report.functions[shown].sites) {
      LocatedSite& located = sites.emplace_back();
      const auto event = events.find(site.event);
      if (event == events.end()) continue;
      located = {.name = event->second->name,
                 .kind = event->second->kind,
                 .lines = table.At(plan.sections[i].section, site.offset)};
    }
    ++shown;
  }
  const std::vector<Location> places = PlacesOf(sites);
  std::map<uint32_t, std::optional<Location>> of_event;
  size_t next = 0;
  for (FunctionReport& function : report.functions) {
    for (SiteReport& site : function.sites) {
      site.place = places[next++];
      if (!site.place.known()) continue;
      const auto [known, is_new] = of_event.try_emplace(site.event, site.place);
      if (!is_new && known->second != site.place) known->second.reset();
    }
  }
  for (Declaration& declaration : report.declarations) {
    const auto known = of_event.find(declaration.id);
    if (known == of_event.end() || !known->second) continue;
    declaration.file = known->second->file;
    declaration.line = known->second->line;
  }
}

// Names the events that sites store and nothing declares.
void FindUndeclared(ImageReport& report) {
  std::set<uint32_t> declared;
  for (const Declaration& declaration : report.declarations) declared.insert(declaration.id);
  std::map<uint32_t, size_t> sites_of;
  for (const FunctionReport& function : report.functions) {
    for (const SiteReport& site : function.sites) {
      if (site.event != 0 && !declared.contains(site.event)) ++sites_of[site.event];
    }
  }
  constexpr size_t kMostProblems = 20;
  size_t said = 0;
  for (const auto& [event, sites] : sites_of) {
    if (said++ == kMostProblems) {
      report.problems.push_back(
          fmt::format("and {} more events are not", sites_of.size() - said + 1));
      break;
    }
    report.problems.push_back(fmt::format(
        "the event {:#x} of {} marks is not declared: it will have no name", event, sites));
  }
}

Result<ImageReport> Report(const cubin::Image& image, const Plan& plan) {
  ImageReport report;
  report.arch = image.ArchName();
  report.declarations = plan.declarations.all;
  report.edges = plan.declarations.edges;
  report.problems = plan.declarations.problems;
  report.foreign = plan.foreign;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    if (!plan.Shows(i)) continue;
    report.functions.push_back(Describe(plan.sections[i], plan.Wants(i), plan.HasMarks(i)));
    report.functions.back().left_out = !plan.choices[i].wanted;
    report.functions.back().cluster_ctas = ClusterCtas(image, plan.sections[i].section);
  }
  FindUndeclared(report);
  if (!report.declarations.empty()) Locate(image, plan, report);
  return report;
}

// Writes a rewritten section back, with everything that states its size or its exits.
Result<void> Store(cubin::Image& image, const CodeSection& section,
                   const RewrittenCode& rewritten) {
  const auto code = std::as_bytes(std::span(rewritten.code));
  std::vector<std::byte> bytes(code.begin(), code.end());
  const uint64_t size = bytes.size();
  if (auto done = image.SetSectionData(section.section, std::move(bytes)); !done) return done;
  if (section.is_kernel() || section.functions.size() == 1) {
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

// Relocations by the section that they change.
using RelocationMap = std::map<uint32_t, std::vector<Relocation>>;
RelocationMap RelocationsOf(const cubin::Image& image) {
  RelocationMap all;
  for (const cubin::Section& section : image.sections()) {
    if (section.type != cubin::kSectionRela && section.type != cubin::kSectionRel) continue;
    auto& of_section = all[section.info];
    for (const Relocation& relocation : Relocations(section)) of_section.push_back(relocation);
  }
  return all;
}

// What a relocation will write into a word must still be that word's own.
Result<void> CheckRelocations(const CodeSection& section, const RewrittenCode& rewritten,
                              const RelocationMap& relocations) {
  const auto found = relocations.find(section.section);
  if (found == relocations.end()) return {};
  for (const Relocation& relocation : found->second) {
    const uint64_t i = relocation.offset / sass::kInstructionBytes;
    if (i >= section.code.size()) continue;
    if (section.code[i].WithControl({}) == rewritten.code[i].WithControl({})) continue;
    return Fail(ErrorKind::kBadInput,
                "{}: a relocation applies to the instruction at {:#x}, which has to be replaced",
                section.function().name, relocation.offset);
  }
  return {};
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
  auto plan = MakePlan(image, options);
  if (!plan) return tl::unexpected(plan.error());
  auto report = Report(image, *plan);
  if (!report) return tl::unexpected(report.error());
  Patched result{.report = std::move(*report), .image = std::nullopt};

  if (std::none_of(plan->decisions.begin(), plan->decisions.end(),
                   [](const Decision& decision) { return decision.patch; })) {
    return result;
  }

  cubin::Image edited = image;
  auto constant = AddWindowConstant(edited);
  if (!constant) return tl::unexpected(constant.error());

  const RelocationMap relocations = RelocationsOf(image);
  uint32_t kernel = options.first_kernel;
  size_t shown = 0;
  for (size_t i = 0; i < plan->sections.size(); ++i) {
    if (!plan->Shows(i)) continue;
    const CodeSection& section = plan->sections[i];
    FunctionReport& function = result.report.functions[shown++];
    if (!plan->Wants(i)) continue;
    std::optional<EntryOptions> entry;
    if (section.is_kernel()) {
      const uint32_t* known = KnownNumber(options, function.name);
      function.number = known != nullptr ? *known : kernel++;
      if (function.number >= ring::kMaxKernels) {
        return Fail(ErrorKind::kSystem, "more than {} kernels in one process", ring::kMaxKernels);
      }
      entry = EntryOptions{.layout = options.layout,
                           .generation = section.generation,
                           .kernel = function.number,
                           .constant_offset = *constant,
                           .reads_cta_yz = section.reads_cta_yz,
                           .filter = plan->choices[i].wanted ? plan->choices[i].filter
                                                             : ring::CtaFilter{.nobody = true}};
      function.filter = entry->filter;
    }
    const RewrittenCode code = Rewrite(section, options.layout, entry ? &*entry : nullptr);
    if (auto fits = CheckRelocations(section, code, relocations); !fits) {
      return tl::unexpected(fits.error());
    }
    if (auto done = Store(edited, section, code); !done) return tl::unexpected(done.error());
    if (section.registers < section.patched_registers) {
      function.patched_registers = section.patched_registers;
      for (const cubin::Function& member : section.functions) {
        if (!member.is_kernel && &member != &section.functions.front()) continue;
        if (auto done = cubin::SetRegisterCount(edited, member.symbol, section.patched_registers);
            !done) {
          return tl::unexpected(done.error());
        }
      }
    }
  }
  result.image = edited.Serialize();
  return result;
}

}  // namespace iket::patch
