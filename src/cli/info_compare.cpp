// iket info --compare: what marks cost a kernel before it runs, read off both builds.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/demangle.h"
#include "cli/code_images.h"
#include "cli/command.h"
#include "cli/info.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "export/json_writer.h"
#include "sass/decode.h"
#include "sass/instruction.h"

namespace iket::cli {
namespace {

using Align = Table::Align;

// What is written in the code of a kernel.
struct Cost {
  uint64_t registers = 0;       // a thread
  uint64_t stack_bytes = 0;     // a thread
  uint64_t local_accesses = 0;  // instructions that load or store local memory: spills, arrays
  uint64_t instructions = 0;    // with the device functions inside it, without padding
  uint64_t warps = 0;           // of a SM, as far as registers allow; 0 where the rule is not known
};

// Registers are given to warps in units of 256, to warps in fours; 64 Ki of them in a SM.
uint64_t WarpsByRegisters(uint64_t registers, int sm) {
  if (sm < 80 || registers == 0) return 0;
  const uint64_t most = sm == 86 || sm == 89 || sm == 120 || sm == 121 ? 48 : 64;
  const uint64_t a_warp = (registers * 32 + 255) / 256 * 256;
  return std::min(most, 65536 / a_warp / 4 * 4);
}

Cost CostOf(const cubin::Image& image, const cubin::Function& function) {
  Cost cost;
  cost.registers = cubin::GetRegisterCount(image, function.symbol).value_or(0);
  cost.warps = WarpsByRegisters(cost.registers, image.sm());
  if (const auto info = image.FindSection(".nv.info")) {
    for (const auto code :
         {cubin::AttributeCode::kFrameSize, cubin::AttributeCode::kMinStackSize}) {
      const auto found = cubin::FindAttribute(image.sections()[*info].data, code, function.symbol);
      if (found)
        cost.stack_bytes = std::max<uint64_t>(cost.stack_bytes, found->Word(1).value_or(0));
    }
  }
  const UntrustedBytes section(image.sections()[function.section].data);
  const auto code = section.Slice(function.offset, function.size);
  uint64_t padding = 0;
  for (uint64_t at = 0; code && at < code->size(); at += sizeof(sass::Instruction)) {
    const auto word = code->Read<sass::Instruction>(at);
    if (!word) break;
    ++cost.instructions;
    padding = word->opcode() == sass::kOpNop ? padding + 1 : 0;
    const sass::OpcodeRow* const row = sass::FindOpcode(*word);
    const std::string_view mnemonic = row != nullptr ? row->mnemonic : "";
    if (mnemonic == "LDL" || mnemonic == "STL") ++cost.local_accesses;
  }
  cost.instructions -= padding;
  return cost;
}

// The kernels of a file, by architecture and mangled name.
using Costs = std::map<std::pair<std::string, std::string>, Cost>;
Result<Costs> Read(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file) return tl::unexpected(file.error());
  Costs costs;
  std::string problem;
  Progress progress("reading " + path);
  ForEachCodeImage(
      file->untrusted(),
      [&](const CodeImage& code) {
        if (!code.is_cubin() || code.code.empty()) return;
        const auto image = cubin::Image::Parse(UntrustedBytes(code.code));
        const auto functions =
            image ? cubin::Functions(*image)
                  : Result<std::vector<cubin::Function>>(tl::unexpected(image.error()));
        if (!functions) {
          problem = functions.error().message;
          return;
        }
        for (const cubin::Function& function : *functions) {
          if (!function.is_kernel) continue;
          costs[{image->ArchName(), std::string(function.name)}] = CostOf(*image, function);
        }
      },
      progress.Callback());
  if (!costs.empty()) return costs;
  return Fail(ErrorKind::kBadInput, "{}: no machine code of kernels{}{}", path,
              problem.empty() ? "" : ": ", problem);
}

std::string Architectures(const Costs& costs) {
  std::set<std::string> all;
  for (const auto& [which, cost] : costs) all.insert(which.first);
  return fmt::format("{}", fmt::join(all, ", "));
}

struct Column {
  const char* key;
  const char* title;
  uint64_t Cost::* value;
};
constexpr Column kColumns[] = {
    {"registers", "registers", &Cost::registers},
    {"stack_bytes", "stack", &Cost::stack_bytes},
    {"local_accesses", "LDL+STL", &Cost::local_accesses},
    {"instructions", "instructions", &Cost::instructions},
    {"warps_by_registers", "warps by registers", &Cost::warps},
};

// What ptxas writes where it does not know: the stack of a function that calls itself.
constexpr uint64_t kUnknown = 0xffffffff;

std::string Number(uint64_t value) { return value == kUnknown ? "?" : std::to_string(value); }
std::string Change(uint64_t before, uint64_t after) {
  if (before == after) return Number(before);
  return fmt::format("{} -> {}", Number(before), Number(after));
}
std::optional<uint64_t> Known(uint64_t value) {
  return value == kUnknown ? std::nullopt : std::optional(value);
}

}  // namespace

Result<int> CompareCode(const InfoOptions& options) {
  const auto before = Read(options.file);
  if (!before) return tl::unexpected(before.error());
  const auto after = Read(options.compare);
  if (!after) return tl::unexpected(after.error());

  std::vector<std::string> titles = {"kernel"};
  std::vector<Align> aligns = {Align::kLeft};
  for (const Column& column : kColumns) {
    titles.emplace_back(column.title);
    aligns.push_back(Align::kRight);
  }
  Table table(std::move(aligns));
  table.Row(std::move(titles));
  exporter::JsonWriter json;
  uint64_t same = 0, compared = 0;
  std::vector<std::string> alone;
  {
    auto object = json.Object();
    json.Member("before", options.file);
    json.Member("after", options.compare);
    auto kernels = json.Array("kernels");
    for (const auto& [which, cost] : *before) {
      const auto other = after->find(which);
      if (other == after->end()) {
        alone.push_back(fmt::format("{} ({}) is in {} alone", capture::DemangledName(which.second),
                                    which.first, options.file));
        continue;
      }
      ++compared;
      std::vector<std::string> row = {Printable(capture::DemangledName(which.second))};
      bool equal = true;
      auto entry = json.Object();
      json.Member("name", which.second);
      json.Member("arch", which.first);
      for (const Column& column : kColumns) {
        const uint64_t old_value = cost.*column.value, new_value = other->second.*column.value;
        equal &= old_value == new_value;
        row.push_back(Change(old_value, new_value));
        auto pair = json.Array(column.key);
        json.Value(Known(old_value));
        json.Value(Known(new_value));
      }
      if (equal && !options.all) {
        ++same;
      } else {
        table.Row(std::move(row));
      }
    }
    for (const auto& [which, cost] : *after) {
      if (before->contains(which)) continue;
      alone.push_back(fmt::format("{} ({}) is in {} alone", capture::DemangledName(which.second),
                                  which.first, options.compare));
    }
  }
  if (compared == 0) {
    return Fail(ErrorKind::kBadInput,
                "{} ({}) and {} ({}) have no kernel of the same name and architecture",
                options.file, Architectures(*before), options.compare, Architectures(*after));
  }
  if (options.json) {
    Print(json.text() + "\n");
    return kExitDone;
  }
  std::string text = fmt::format("{} -> {}\n", Printable(options.file), Printable(options.compare));
  if (same != compared) text += "\n" + table.Text(2);
  if (same != 0) text += fmt::format("\n{} without a difference\n", Counted(same, "kernel"));
  for (const std::string& line : alone) text += Printable(line) + "\n";
  Print(text);
  return kExitDone;
}

}  // namespace iket::cli
