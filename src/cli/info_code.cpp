#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "capture/demangle.h"
#include "cli/attribute_words.h"
#include "cli/code_images.h"
#include "cli/command.h"
#include "cli/event_words.h"
#include "cli/info.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "export/json_writer.h"
#include "patch/patch.h"
#include "patch/scan.h"

namespace iket::cli {
namespace {

using Align = Table::Align;
using exporter::JsonWriter;

// One image, judged.
struct ImageInfo {
  std::string where;
  std::string arch;
  std::string kind;
  uint64_t bytes = 0;
  std::string problem;  // why it could not be read
  uint64_t kernels = 0;
  std::vector<patch::FunctionReport> functions;  // of the report, then kernels without marks
  patch::ImageReport report;
  bool ptx_marks = false;  // PTX with the name of a declaration in its text

  bool marked() const { return report.has_marks() || ptx_marks; }
};

// What another tool's marks are, and what they do when nobody records them.
std::string ForeignText(const ImageInfo& info) {
  const patch::ForeignMarks& foreign = info.report.foreign;
  std::string text =
      fmt::format("{} placeholders of NVIDIA's IKET, by another front end: {}",
                  patch::MethodName(foreign.method()), Counted(foreign.events.size(), "event"));
  if (foreign.malformed != 0) text += fmt::format("; {} malformed", foreign.malformed);
  return text;
}

// Before sm_90 the shared memory that placeholders store to is not set apart for it.
bool OverwritesSharedMemory(const ImageInfo& info) {
  const patch::ForeignMarks& foreign = info.report.foreign;
  return info.arch.starts_with("sm_8") && !foreign.events.empty() &&
         !patch::IsBare(foreign.method());
}

std::string PayloadOf(const patch::Declaration& declaration) {
  return ValuesText(static_cast<capture::PayloadType>(declaration.payload), declaration.attributes);
}

std::string FateOf(const patch::FunctionReport& function) {
  if (!function.refusal.empty()) return "refused: " + function.refusal;
  if (!function.sites.empty()) return "traced";
  if (function.has_trampoline) return "begin and end traced";
  return function.is_kernel ? "no marks" : "ends of warps traced";
}

// Kernels that the patcher would leave alone are not in its report.
void AddUnmarkedKernels(const cubin::Image& image, ImageInfo& info) {
  const auto functions = cubin::Functions(image);
  if (!functions) {
    info.problem = functions.error().message;
    return;
  }
  for (const cubin::Function& function : *functions) {
    if (!function.is_kernel) continue;
    ++info.kernels;
    if (std::any_of(info.functions.begin(), info.functions.end(),
                    [&](const auto& known) { return known.name == function.name; })) {
      continue;
    }
    patch::FunctionReport& added = info.functions.emplace_back();
    added.name = function.name;
    added.is_kernel = true;
    added.registers = cubin::GetRegisterCount(image, function.symbol).value_or(0);
  }
}

ImageInfo Describe(const CodeImage& code) {
  ImageInfo info{.where = code.where,
                 .arch = code.arch,
                 .kind = code.kind,
                 .bytes = code.code.size(),
                 .problem = code.problem,
                 .functions = {},
                 .report = {},
                 .ptx_marks = false};
  if (code.code.empty()) return info;
  if (code.is_ptx()) {
    info.ptx_marks = patch::MayHoldMarks(UntrustedBytes(code.code));
    return info;
  }
  const auto image = cubin::Image::Parse(UntrustedBytes(code.code));
  if (!image) {
    info.problem = image.error().message;
    return info;
  }
  info.arch = image->ArchName();
  auto report = patch::Inspect(*image);
  if (report) {
    info.report = std::move(*report);
    info.functions = info.report.functions;
  } else {
    info.problem = report.error().message;
  }
  AddUnmarkedKernels(*image, info);
  return info;
}

bool AnyPlace(const ImageInfo& info) {
  return std::any_of(info.functions.begin(), info.functions.end(), [](const auto& function) {
    return std::any_of(function.sites.begin(), function.sites.end(),
                       [](const auto& site) { return site.place.known(); });
  });
}

// Events that are declared and stand nowhere: what the compiler found out to be dead code. Empty
// where a site does not show its event, which may be any.
std::set<uint32_t> WithoutSite(const ImageInfo& info) {
  std::set<uint32_t> events;
  for (const patch::Declaration& declaration : info.report.declarations) {
    events.insert(declaration.id);
  }
  for (const patch::FunctionReport& function : info.functions) {
    // Of a refused one not all sites need be known.
    if (!function.refusal.empty()) return {};
    for (const patch::SiteReport& site : function.sites) {
      if (site.event == 0) return {};
      events.erase(site.event);
    }
  }
  return events;
}

// "tile, range begin, i32, gemm.cu:120".
std::string SiteText(const ImageInfo& info, const patch::SiteReport& site) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  for (const patch::Declaration& declaration : info.report.declarations) {
    if (declaration.id != site.event) continue;
    add(Printable(declaration.name));
    add(KindText(declaration.kind));
    add(Printable(PayloadOf(declaration)));
    break;
  }
  add(PlaceText(site.place.file, site.place.line));
  return text;
}

std::string ImageText(const ImageInfo& info, const InfoOptions& options) {
  std::string text = info.where.empty() ? "" : "\n" + info.where + ": ";
  text += fmt::format("{}{}{}", info.kind, info.arch.empty() ? "" : ", ", info.arch);
  if (info.kind == "PTX" && info.bytes != 0) {
    text += fmt::format(", {}, {}", Bytes(info.bytes), info.ptx_marks ? "with marks" : "no marks");
  } else if (info.bytes != 0) {
    text += fmt::format(", {}, {}", Bytes(info.bytes), Counted(info.kernels, "kernel"));
  }
  text += "\n";
  if (!info.problem.empty()) text += fmt::format("  problem: {}\n", Printable(info.problem));
  if (info.report.foreign.any()) {
    text += fmt::format("  foreign: {}\n", ForeignText(info));
    if (!info.report.foreign.refusal.empty()) {
      text += fmt::format("  refused: {}\n", Printable(info.report.foreign.refusal));
    }
    if (OverwritesSharedMemory(info)) {
      text +=
          "  warning: where nobody records them these marks store to byte 0x20 of the kernel's own "
          "shared memory; build for sm_90 and later, or without marks\n";
    }
  }
  for (const std::string& problem : info.report.problems) {
    text += fmt::format("  problem: {}\n", Printable(problem));
  }

  if (!info.report.declarations.empty()) {
    Table table(
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
    table.Row({"mark", "kind", "payload", "id", AnyPlace(info) ? "where" : "", ""});
    std::vector<patch::Declaration> by_name = info.report.declarations;
    const std::set<uint32_t> without_site = WithoutSite(info);
    std::ranges::stable_sort(by_name, [](const auto& a, const auto& b) {
      return std::tie(a.name, a.kind) < std::tie(b.name, b.kind);
    });
    for (const patch::Declaration& declaration : by_name) {
      table.Row({Clipped(Printable(declaration.name)), KindText(declaration.kind),
                 Printable(PayloadOf(declaration)), fmt::format("{:#010x}", declaration.id),
                 PlaceText(declaration.file, declaration.line),
                 Printable(RowText(declaration.attributes)) +
                     (without_site.contains(declaration.id) ? "  in no code" : "")});
    }
    text += "\n" + table.Text(2);
  }
  if (!info.report.edges.empty()) {
    text += "\n  declared dependencies\n";
    for (const patch::Edge& edge : info.report.edges) {
      text += "    " + Printable(EdgeText(edge)) + "\n";
    }
  }

  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.Row({"function", "registers", "sites", ""});
  bool any = false;
  uint64_t left_out = 0;
  for (const patch::FunctionReport& function : info.functions) {
    const bool marked = !function.sites.empty() || !function.refusal.empty() ||
                        function.has_trampoline || !function.is_kernel;
    if (!marked && !options.all && info.report.has_marks()) {
      ++left_out;
      continue;
    }
    any = true;
    table.Row({Printable(capture::DemangledName(function.name)), std::to_string(function.registers),
               std::to_string(function.sites.size()), Printable(FateOf(function))});
    if (!options.sites) continue;
    for (const patch::SiteReport& site : function.sites) {
      table.Row({fmt::format("  at {:#06x}", site.offset), "", "", SiteText(info, site)});
    }
  }
  if (any) text += "\n" + table.Text(2);
  if (left_out != 0) text += fmt::format("  and {} without marks\n", Counted(left_out, "kernel"));
  return text;
}

void WriteImage(JsonWriter& json, const ImageInfo& info) {
  auto object = json.Object();
  json.Member("where", info.where);
  json.Member("kind", info.kind);
  json.Member("arch", info.arch);
  json.Member("bytes", info.bytes);
  json.Member("problem", info.problem);
  if (info.kind == "PTX") json.Member("marks", info.ptx_marks);
  {
    auto problems = json.Array("problems");
    for (const std::string& problem : info.report.problems) json.Value(problem);
  }
  {
    auto foreign = json.Object("foreign");
    const patch::ForeignMarks& marks = info.report.foreign;
    json.Member("method", marks.any() ? patch::MethodName(marks.method()) : "");
    json.Member("events", uint64_t{marks.events.size()});
    json.Member("malformed", marks.malformed);
    json.Member("refusal", marks.refusal);
    json.Member("overwrites_shared_memory", OverwritesSharedMemory(info));
    auto names = json.Array("names");
    for (const patch::ForeignEvent& event : marks.events) json.Value(event.name);
  }
  {
    const std::set<uint32_t> without_site = WithoutSite(info);
    auto declarations = json.Array("declarations");
    for (const patch::Declaration& declaration : info.report.declarations) {
      auto entry = json.Object();
      json.Member("name", declaration.name);
      json.Member("kind", KindText(declaration.kind));
      json.Member("payload", PayloadText(static_cast<capture::PayloadType>(declaration.payload)));
      WriteAttributes(json, declaration.attributes);
      json.Member("in_code", !without_site.contains(declaration.id));
      json.Member("id", declaration.id);
      json.Member("file", declaration.file);
      json.Member("line", declaration.line);
    }
  }
  WriteEdges(json, info.report.edges);
  auto functions = json.Array("functions");
  for (const patch::FunctionReport& function : info.functions) {
    auto entry = json.Object();
    json.Member("name", function.name);
    json.Member("demangled", capture::DemangledName(function.name));
    json.Member("kernel", function.is_kernel);
    json.Member("registers", function.registers);
    json.Member("refusal", function.refusal);
    auto sites = json.Array("sites");
    for (const patch::SiteReport& site : function.sites) {
      auto place = json.Object();
      json.Member("offset", site.offset);
      json.Member("payload", site.has_payload);
      json.Member("event", site.event);
      json.Member("file", site.place.file);
      json.Member("line", site.place.line);
    }
  }
}

// What is in a file as a whole.
struct Seen {
  bool cubin = false, ptx = false, lto_ir = false;  // at all
  bool ptx_marks = false, cubin_marks = false;

  void Add(const ImageInfo& info) {
    if (!info.problem.empty()) return;
    cubin |= info.kind == "cubin";
    ptx |= info.kind == "PTX";
    lto_ir |= info.kind == "LTO-IR";
    ptx_marks |= info.ptx_marks;
    cubin_marks |= info.kind == "cubin" && info.marked();
  }
};

// What to do about it, a line each.
std::string Advice(const Seen& seen) {
  std::string text;
  const bool marks = seen.cubin_marks || seen.ptx_marks;
  if (seen.lto_ir && !seen.cubin_marks) {
    text += "LTO-IR is not looked into: whether it has marks shows in what is linked from it\n";
  } else if (!marks && (seen.cubin || seen.ptx)) {
    text += "no marks: build with -DIKET_ENABLE, for sm_80 or later, and without -G\n";
  }
  if (seen.ptx_marks && !seen.cubin && !seen.lto_ir) {
    text += "PTX only: iket profile compiles it with the driver's linker, and traces that\n";
  }
  return text;
}

}  // namespace

Result<int> InfoOnCode(const InfoOptions& options, UntrustedBytes file) {
  const std::string kind = FileKind(file);
  if (kind.empty()) {
    return Fail(ErrorKind::kBadInput,
                "{}: neither a capture nor PTX, a cubin, fatbin, program, library or archive",
                options.file);
  }

  // Libraries hold thousands of images: those without marks are only counted.
  std::vector<ImageInfo> shown;
  std::map<std::string, uint64_t> unmarked;  // images by kind and architecture
  uint64_t unmarked_kernels = 0;
  uint64_t count = 0;
  Seen seen;
  {
    Progress progress("reading " + options.file);
    count = ForEachCodeImage(
        file,
        [&](const CodeImage& code) {
          ImageInfo info = Describe(code);
          seen.Add(info);
          if (info.marked() || !info.problem.empty() || options.all || options.json ||
              info.where.empty()) {
            shown.push_back(std::move(info));
          } else {
            // What is in LTO-IR only the compiler can read.
            ++unmarked[fmt::format("{} for {}{}", info.kind, info.arch,
                                   info.kind == "LTO-IR" ? ", not looked into" : " without marks")];
            unmarked_kernels += info.kernels;
          }
        },
        progress.Callback());
  }
  if (count == 0) {
    return Fail(ErrorKind::kBadInput, "{}: {} without GPU code; is it the right file?",
                options.file, kind);
  }
  if (count == 1 && !shown.empty() && !shown[0].problem.empty() && shown[0].where.empty()) {
    return Fail(ErrorKind::kBadInput, "{}: {}", options.file, shown[0].problem);
  }

  if (options.json) {
    JsonWriter json;
    {
      auto object = json.Object();
      json.Member("file", options.file);
      json.Member("kind", kind);
      auto images = json.Array("images");
      for (const ImageInfo& info : shown) WriteImage(json, info);
    }
    Print(json.text() + "\n");
    return kExitDone;
  }
  std::string text = Printable(options.file) + ": ";
  if (shown.size() != 1 || !shown[0].where.empty()) {
    text += fmt::format("{} with {}\n", kind, Counted(count, "code image"));
  }
  for (const ImageInfo& info : shown) text += ImageText(info, options);
  for (const auto& [what, images] : unmarked) {
    text += fmt::format("{}: {}\n", what, Count(images));
  }
  if (unmarked_kernels != 0) {
    text += fmt::format("kernels in them: {}\n", Count(unmarked_kernels));
  }
  text += Advice(seen);
  Print(text);
  return kExitDone;
}

}  // namespace iket::cli
