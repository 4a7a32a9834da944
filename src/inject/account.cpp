#include "inject/account.h"

#include "capture/demangle.h"
#include "inject/say.h"

namespace iket::inject {
namespace {

// 0x00RRGGBB in four bytes.
uint32_t ColourOf(const patch::Declaration& declaration) {
  uint32_t colour = capture::kAutomaticColour;
  for (const patch::Attribute& attribute : declaration.attributes) {
    if (attribute.what != patch::AttributeKind::kColour || attribute.text.size() != 4) continue;
    colour = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      colour |= uint32_t{static_cast<uint8_t>(attribute.text[i])} << (8 * i);
    }
  }
  return colour;
}

capture::Declaration ToCapture(uint32_t image, const patch::Declaration& declaration) {
  return {.image = image,
          .event = declaration.id,
          .kind = declaration.kind,
          .payload = static_cast<capture::PayloadType>(declaration.payload),
          .name = declaration.name,
          .colour = ColourOf(declaration),
          .file = declaration.file,
          .line = declaration.line,
          .left_out = declaration.left_out};
}

// A kernel with marks of which none is wanted, and that nothing else wants patched.
bool HasNoWantedSite(const patch::FunctionReport& function) {
  return !function.sites.empty() && function.sites_left_out == function.sites.size() &&
         !function.has_trampoline;
}

}  // namespace

void Account(Guest& guest, const cubin::Image& image, const patch::ImageReport& report,
             UntrustedBytes bytes, const std::string& source, KernelNumbers* numbers) {
  const uint32_t number = guest.TakeImageNumber();
  guest.Append(capture::Image{.index = number,
                              .sm = static_cast<uint32_t>(image.sm()),
                              .hash = capture::ImageHash(bytes.span()),
                              .bytes = bytes.size(),
                              .marked_functions = static_cast<uint32_t>(report.functions.size()),
                              .source = source});
  for (size_t at = 0; at < report.declarations.size(); ++at) {
    const patch::Declaration& declaration = report.declarations[at];
    // Of two with one id the last is the one that is known, with what is said of it alone.
    if (at + 1 < report.declarations.size() && report.declarations[at + 1].id == declaration.id) {
      continue;
    }
    guest.Append(ToCapture(number, declaration));
    for (uint32_t i = 0; i < declaration.attributes.size(); ++i) {
      const patch::Attribute& attribute = declaration.attributes[i];
      if (attribute.what == patch::AttributeKind::kColour) continue;  // the row above has it
      guest.Append(capture::Attribute{.image = number,
                                      .event = declaration.id,
                                      .position = i,
                                      .what = attribute.what,
                                      .number = attribute.number,
                                      .text = attribute.text});
    }
  }
  for (const patch::Edge& edge : report.edges) {
    guest.Append(capture::DeclaredEdge{.image = number,
                                       .dag = edge.dag,
                                       .from = edge.from,
                                       .to = edge.to,
                                       .label = edge.label,
                                       .via = edge.via});
  }
  for (const std::string& problem : report.problems) {
    guest.Note(capture::Severity::kWarning, -1, problem);
  }
  for (const patch::FunctionReport& function : report.functions) {
    const std::string demangled = capture::DemangledName(function.name);
    if (!function.is_kernel && function.sites_left_out != 0) {
      guest.Note(capture::Severity::kInfo, -1,
                 fmt::format("{}: {} of {} sites left out by --range-filter", demangled,
                             function.sites_left_out, function.sites.size()));
    }
    const bool no_site = function.is_kernel && HasNoWantedSite(function);
    if ((function.left_out || no_site) && function.refusal.empty()) {
      // Nothing but that it is there, for whoever misses it.
      guest.Append(capture::Kernel{
          .index = guest.TakeKernelNumbers(1),
          .image = number,
          .mangled_name = function.name,
          .demangled_name = demangled,
          .state = capture::KernelState::kLeftOut,
          .refusal = function.left_out ? "" : "--range-filter wants none of its events",
          .registers_before = static_cast<uint16_t>(function.registers),
          .registers_after = static_cast<uint16_t>(function.patched_registers),
          .sites = static_cast<uint32_t>(function.sites.size()),
          .sites_left_out = function.sites_left_out});
      continue;
    }
    if (!function.refusal.empty()) Say(demangled + " is not traced: " + function.refusal);
    if (!function.is_kernel) {
      if (!function.refusal.empty()) {
        guest.Note(capture::Severity::kRefusal, -1, demangled + ": " + function.refusal);
      }
      continue;
    }
    if (numbers != nullptr && numbers->contains(function.name)) continue;
    const uint32_t kernel = function.has_trampoline ? function.number : guest.TakeKernelNumbers(1);
    guest.Append(capture::Kernel{
        .index = kernel,
        .image = number,
        .mangled_name = function.name,
        .demangled_name = demangled,
        .state = function.has_trampoline ? capture::KernelState::kPatched
                                         : capture::KernelState::kRefused,
        .refusal = function.refusal,
        .registers_before = static_cast<uint16_t>(function.registers),
        .registers_after = static_cast<uint16_t>(function.patched_registers),
        .sites = static_cast<uint32_t>(function.sites.size()),
        .sites_refused =
            function.refusal.empty() ? 0 : static_cast<uint32_t>(function.sites.size()),
        .sites_left_out = function.sites_left_out});
    if (!function.filter.passes_all()) {
      guest.Append(capture::KernelFilter{
          .kernel = kernel,
          .by_cluster = function.filter.cluster.has_value(),
          .by_sm = !function.filter.sms.empty(),
          .cluster = function.filter.cluster.value_or(std::array<uint32_t, 3>{}),
          .sample = function.filter.sample,
          .cluster_ctas = function.cluster_ctas});
    }
    if (function.has_trampoline && numbers != nullptr) numbers->emplace(function.name, kernel);
  }
}

}  // namespace iket::inject
