// sim_coverage: counts the machine code of cubins that the software device knows and executes.
//
//   sim_coverage FILE...           a table, by mnemonic
//   sim_coverage --json FILE...    counts, and every distinct word that is refused
//
// Exit code 3 if a file is no sm_90 cubin. The names are the decoder's, without modifiers;
// tools/samples-coverage asks nvdisasm for those.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sass/decode.h"
#include "sim/coverage.h"

namespace iket::sim {
namespace {

std::string Mnemonic(const sass::Instruction& word) {
  const sass::OpcodeRow* const row = sass::FindOpcode(word);
  return row != nullptr ? row->mnemonic : fmt::format("opcode {:#x}", word.opcode());
}

const char* Name(Coverage::Lack lack) {
  return lack == Coverage::Lack::kUnknown ? "unknown" : "unsupported";
}

// A JSON string: names of symbols and files hold no control characters, but who knows.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

void PrintJson(const Coverage& coverage) {
  fmt::print(
      "{{\"kernels\":{},\"words\":{},\"nops\":{},\"unknown\":{},\"unsupported\":{},\"rest\":[",
      coverage.kernels(), coverage.words(), coverage.nops(), coverage.unknown(),
      coverage.unsupported());
  const char* comma = "";
  for (const Coverage::Refused& refused : coverage.refused()) {
    fmt::print(
        "{}\n{{\"lack\":\"{}\",\"mnemonic\":{},\"low\":\"{:016x}\",\"high\":\"{:016x}\","
        "\"count\":{},\"where\":{}}}",
        comma, Name(refused.lack), Quoted(Mnemonic(refused.word)), refused.word.low,
        refused.word.high, refused.count, Quoted(refused.where));
    comma = ",";
  }
  fmt::print("]}}\n");
}

void PrintTable(const Coverage& coverage) {
  const auto percent = [&](uint64_t part) {
    return coverage.words() == 0
               ? 0.0
               : 100.0 * static_cast<double>(part) / static_cast<double>(coverage.words());
  };
  fmt::print("{} kernels, {} words, {} of them NOP\n", coverage.kernels(), coverage.words(),
             coverage.nops());
  const uint64_t decoded = coverage.words() - coverage.unknown();
  const uint64_t executed = coverage.words() - coverage.unsupported();
  fmt::print("decoded   {} ({:.2f} %)\nexecuted  {} ({:.2f} %)\n", decoded, percent(decoded),
             executed, percent(executed));
  std::map<std::pair<std::string, Coverage::Lack>, Coverage::Refused> groups;
  for (const Coverage::Refused& refused : coverage.refused()) {
    auto [group, fresh] = groups.try_emplace({Mnemonic(refused.word), refused.lack}, refused);
    if (!fresh) group->second.count += refused.count;
  }
  for (const auto& [key, group] : groups) {
    fmt::print("{:<12} {:<16} {:>7}   {:016x}_{:016x}  {}   {}\n", Name(group.lack), key.first,
               group.count, group.word.high, group.word.low, sass::Disassemble(group.word),
               group.where);
  }
}

int Main(int argc, char** argv) {
  const bool json = argc > 1 && std::string_view(argv[1]) == "--json";
  if (argc - (json ? 1 : 0) < 2 || std::string_view(argv[1]) == "--help") {
    fmt::print(stderr, "usage: sim_coverage [--json] CUBIN...\n");
    return ExitCode(ErrorKind::kUsage);
  }
  Coverage coverage;
  int code = 0;
  for (int i = json ? 2 : 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (!file.is_open()) {
      fmt::print(stderr, "sim_coverage: cannot read {}\n", argv[i]);
      return ExitCode(ErrorKind::kSystem);
    }
    const std::string_view path(argv[i]);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (auto added = coverage.Add(UntrustedBytes(bytes.data(), bytes.size()), name); !added) {
      fmt::print(stderr, "sim_coverage: {}\n", added.error().message);
      code = ExitCode(added.error().kind);
    }
  }
  if (json) {
    PrintJson(coverage);
  } else {
    PrintTable(coverage);
  }
  return code;
}

}  // namespace
}  // namespace iket::sim

int main(int argc, char** argv) { return iket::sim::Main(argc, argv); }
