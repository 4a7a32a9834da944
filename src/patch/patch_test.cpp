// From a compiled cubin to a patched one: what changed, and above all what did not.
#include "patch/patch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "cubin/nvinfo.h"
#include "cubin/testing.h"
#include "patch/analysis.h"
#include "patch/testing_flips.h"
#include "patch/testing_warp.h"
#include "patch/trampoline.h"
#include "patch/window_constant.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

constexpr sass::Generation kHopper = sass::Generation::kHopper;

using cubin::Image;
using cubin::testing::Bytes;
using sass::Instruction;
using sass::kInstructionBytes;
using Code = std::vector<Instruction>;

constexpr char kPlain[] = "plain.sm_90a.cubin";
constexpr char kCalls[] = "calls.sm_90a.linked.cubin";

ring::Layout TestLayout() { return ring::MakeLayout(32 << 10, 132).value(); }
Options TestOptions() { return {.layout = TestLayout(), .first_kernel = 1000}; }

Image Parse(const Bytes& bytes) {
  auto image = Image::Parse(UntrustedBytes(bytes));
  EXPECT_TRUE(image) << image.error().message;
  return std::move(image).value();
}
Image Load(const std::string& file) {
  return Parse(cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/" + file));
}
Patched PatchOrDie(const Image& image) {
  auto patched = PatchImage(image, TestOptions());
  EXPECT_TRUE(patched) << patched.error().message;
  return std::move(patched).value();
}

Code CodeOf(const Image& image, uint32_t section) {
  return DecodeCode(image.sections()[section].data).value();
}
uint32_t SectionOf(const Image& image, const std::string& function) {
  return image.FindSection(".text." + function).value();
}
void SetCode(Image& image, uint32_t section, const Code& code) {
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(section, Bytes(bytes.begin(), bytes.end())));
}

// A mark's words, told apart here without the help of site.cpp.
uint32_t SlotMask(const Instruction& i) {
  return i.opcode() == sass::kOpPmTrig ? static_cast<uint32_t>(i.low >> 32) & 0xffff : 0;
}
bool IsMarkStore(const Instruction& i, uint32_t offset24, uint32_t width) {
  return (i.opcode() == sass::kOpStsUniform || i.opcode() == sass::kOpSts) &&
         i.Bits(40, 24) == offset24 && i.Bits(73, 3) == width;
}
bool IsPlain(const Instruction& i) { return IsMarkStore(i, 0xfffff8, 5); }
bool IsPayload(const Instruction& i) { return IsMarkStore(i, 0xfffff0, 6); }
bool IsStore(const Instruction& i) { return IsPlain(i) || IsPayload(i); }

// By instruction: true for the words of marks, the comparison and what it guards among them.
std::vector<bool> MarkWords(const Code& code) {
  std::vector<bool> words(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    if (SlotMask(code[i]) != 0) words[i] = true;
    if (!IsStore(code[i])) continue;
    const uint8_t guard = code[i].guard();
    for (size_t j = i;; --j) {
      const bool compares = j < i && code[j].base_opcode() == 0x00c && code[j].Bits(81, 3) == guard;
      if (compares || code[j].guard() == guard) words[j] = true;
      if (compares || j == 0) break;
    }
  }
  return words;
}

// The cubins that can be patched, and what their sources say is in them.
struct Case {
  std::string file;
  size_t sites;
  size_t with_payload;
  std::set<std::string> kernels;  // that get a trampoline
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.file; }

class PatchedCubin : public ::testing::TestWithParam<Case> {
 protected:
  // Calls check(old code, new code, section, is a kernel) for every section that was patched.
  template <typename Check>
  void ForEachPatchedSection(Check check) const {
    for (const FunctionReport& function : patched_.report.functions) {
      const uint32_t section = SectionOf(old_, function.name);
      SCOPED_TRACE(function.name);
      check(CodeOf(old_, section), CodeOf(new_, section), section, function.is_kernel);
    }
  }

  sass::Generation generation() const {
    return sass::GenerationOf(static_cast<uint32_t>(old_.sm())).value();
  }
  size_t TargetOf(const Code& code, size_t i) const {
    return static_cast<size_t>(sass::RelativeTarget(code[i], i * kInstructionBytes, generation())) /
           kInstructionBytes;
  }

  const Image old_ = Load(GetParam().file);
  const Patched patched_ = PatchOrDie(old_);
  const Image new_ = Parse(patched_.image.value());
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* const arch : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    const auto file = [arch](const char* source, const char* suffix = ".cubin") {
      return fmt::format("{}.{}{}", source, arch, suffix);
    };
    cases.push_back({file("plain"), 3, 0, {"plain"}});
    cases.push_back({file("payloads"), 6, 4, {"payloads"}});
    cases.push_back({file("exits"), 4, 1, {"exits"}});
    cases.push_back({file("stores"), 1, 1, {"stores"}});
    cases.push_back({file("calls", ".linked.cubin"), 3, 0, {"calls", "calls_unmarked"}});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cubins, PatchedCubin, ::testing::ValuesIn(Cases()), [](const auto& of) {
  std::string name = of.param.file.substr(0, of.param.file.rfind('.'));
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST_P(PatchedCubin, ReportsWhatTheSourceSays) {
  size_t sites = 0, with_payload = 0;
  std::set<std::string> kernels;
  std::set<uint32_t> numbers;
  for (const FunctionReport& function : patched_.report.functions) {
    EXPECT_EQ(function.refusal, "");
    EXPECT_EQ(function.has_trampoline, function.is_kernel);
    sites += function.sites.size();
    for (const SiteReport& site : function.sites) with_payload += site.has_payload;
    if (function.has_trampoline) kernels.insert(function.name), numbers.insert(function.number);
  }
  EXPECT_EQ(sites, GetParam().sites);
  EXPECT_EQ(with_payload, GetParam().with_payload);
  EXPECT_EQ(kernels, GetParam().kernels);
  EXPECT_EQ(numbers.size(), kernels.size());
  EXPECT_EQ(*numbers.begin(), TestOptions().first_kernel);
  EXPECT_NE(GetParam().file.find(patched_.report.arch), std::string::npos);
  EXPECT_TRUE(patched_.report.problems.empty());
}

TEST_P(PatchedCubin, KeepsNumbersThatKernelsHaveElsewhere) {
  const std::map<std::string, uint32_t, std::less<>> numbered{{*GetParam().kernels.begin(), 7}};
  Options options = TestOptions();
  options.numbered = &numbered;
  const Patched again = PatchImage(old_, options).value();
  std::set<uint32_t> numbers;
  for (const FunctionReport& function : again.report.functions) {
    if (function.has_trampoline) numbers.insert(function.number);
    if (function.name == *GetParam().kernels.begin()) {
      EXPECT_EQ(function.number, 7u);
    }
  }
  EXPECT_EQ(numbers.size(), GetParam().kernels.size());
  if (numbers.size() > 1) {
    EXPECT_EQ(*std::next(numbers.begin()), TestOptions().first_kernel);
  }
  EXPECT_NE(again.image, patched_.image) << "the number is in the code";
}

TEST_P(PatchedCubin, InspectSaysTheSame) {
  const ImageReport inspected = Inspect(old_).value();
  EXPECT_EQ(inspected.arch, patched_.report.arch);
  EXPECT_EQ(inspected.declarations, patched_.report.declarations);
  ASSERT_EQ(inspected.functions.size(), patched_.report.functions.size());
  for (size_t i = 0; i < inspected.functions.size(); ++i) {
    const FunctionReport& a = inspected.functions[i];
    const FunctionReport& b = patched_.report.functions[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.refusal, b.refusal);
    EXPECT_EQ(a.registers, b.registers);
    ASSERT_EQ(a.sites.size(), b.sites.size());
    for (size_t s = 0; s < a.sites.size(); ++s) EXPECT_EQ(a.sites[s].offset, b.sites[s].offset);
  }
}

TEST_P(PatchedCubin, OtherSectionsKeepTheirBytes) {
  std::set<std::string_view> may_change = {".symtab", ".strtab", ".shstrtab", ".nv.info"};
  std::vector<std::string> names;
  for (const FunctionReport& function : patched_.report.functions) {
    names.push_back(".text." + function.name);
    names.push_back(".nv.info." + function.name);
  }
  may_change.insert(names.begin(), names.end());
  for (uint32_t i = 0; i < old_.sections().size(); ++i) {
    const cubin::Section& before = old_.sections()[i];
    const cubin::Section& after = new_.sections()[i];
    EXPECT_EQ(before.name, after.name);
    if (may_change.contains(before.name)) continue;
    EXPECT_TRUE(std::ranges::equal(before.data, after.data)) << before.name;
  }
}

TEST_P(PatchedCubin, CompiledInstructionsOutsideOfMarksAreUnchanged) {
  ForEachPatchedSection([this](const Code& before, const Code& after, uint32_t, bool is_kernel) {
    const std::vector<bool> marks = MarkWords(before);
    for (size_t i = is_kernel ? 1 : 0; i < before.size(); ++i) {
      if (marks[i]) continue;
      // Behind the last EXIT stands padding only, where its stub may lie.
      if (before[i].opcode() == sass::kOpExit) {
        if (before[i].is_unguarded() && before[i + 1].low == sass::Bra(generation(), 0, 0, {}).low)
          break;
        continue;
      }
      Instruction expected = before[i];
      if (after[i] != expected && sass::CanGuardSources(expected)) {
        // Given a scoreboard, see ExitStubsClobberNothingThatIsStillRead.
        sass::Control control = expected.control();
        control.read_barrier = after[i].control().read_barrier;
        expected = expected.WithControl(control);
      }
      EXPECT_EQ(expected, after[i]) << "at " << i * kInstructionBytes;
    }
  });
}

// Whatever reads an exit stub's registers without a scoreboard might read what the stub wrote.
TEST_P(PatchedCubin, ExitStubsClobberNothingThatIsStillRead) {
  ForEachPatchedSection([this](const Code& before, const Code& after, uint32_t, bool) {
    sass::RegisterSet clobbered;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].opcode() != sass::kOpExit) continue;
      const size_t stub = after[i].opcode() != sass::kOpBra ? i : TargetOf(after, i);
      for (uint32_t r = after[stub + 1].Bits(16, 8) & ~3u, end = r + 4; r < end; ++r) {
        clobbered.set(r);
      }
    }
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].opcode() == sass::kOpExit && before[i].is_unguarded() &&
          before[i + 1].low == sass::Bra(generation(), 0, 0, {}).low) {
        break;  // the rest is the stub
      }
      EXPECT_TRUE((sass::UnguardedSources(after[i], generation()) & clobbered).none())
          << "at " << i * kInstructionBytes;
    }
  });
}

// Stores keep data and scoreboards. Where they go changes, and when: always, in all lanes or in
// the elected one.
TEST_P(PatchedCubin, MarksStoreToTheRing) {
  size_t seen = 0;
  ForEachPatchedSection([this, &seen](const Code& before, const Code& after, uint32_t, bool) {
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(SlotMask(after[i]), 0u) << "at " << i * kInstructionBytes;
      if (!IsStore(before[i])) continue;
      ++seen;
      EXPECT_EQ(after[i].opcode(), 0x986u) << "STG";
      EXPECT_EQ(after[i].Bits(24, 8), sass::kRegisterZero);
      EXPECT_EQ(after[i].Bits(64, 6), 0u) << "UR0";
      EXPECT_EQ(after[i].Bits(40, 24), 0u) << "offset";
      EXPECT_EQ(after[i].Bits(73, 3), before[i].Bits(73, 3)) << "width";
      EXPECT_EQ(after[i].Bits(32, 8), before[i].Bits(32, 8)) << "data";
      EXPECT_EQ(after[i].control(), before[i].control());
      if (IsPlain(before[i])) {
        EXPECT_TRUE(after[i].is_unguarded());
        continue;
      }
      EXPECT_EQ(after[i].guard(), before[i].guard());
      const bool beside = generation() == sass::Generation::kAmpere;
      EXPECT_EQ(after[i].guard_negated(), beside);
      const uint32_t elects = beside ? sass::kOpBra : sass::kOpElect;
      size_t elect = i;
      while (elect > 0 && after[elect].opcode() != elects) --elect;
      // Beside the code its third instruction makes the predicate.
      const size_t maker = beside ? TargetOf(after, elect) + 2 : elect;
      ASSERT_LT(maker, after.size());
      EXPECT_EQ(after[maker].Bits(81, 3), after[i].guard());
    }
    for (const Instruction& added : std::span(after).subspan(before.size())) {
      EXPECT_EQ(SlotMask(added), 0u);
    }
  });
  EXPECT_EQ(seen, GetParam().sites);
}

// Along every path (as far as six branches tell them apart), old and new code beside each other: as
// many records as marks were passed, one behind the other, and the end in the header.
TEST_P(PatchedCubin, WarpsWriteARecordAMark) {
  const uint32_t ring = testing::Warp::kSm * 64 + testing::Warp::kSlot / 256;
  const uint32_t rings = ring * (32u << 10);
  const auto header = static_cast<int32_t>(ring * 256) - (8 << 20);
  ForEachPatchedSection([=, this](const Code& before, const Code& after, uint32_t, bool is_kernel) {
    if (!is_kernel) return;
    for (uint32_t path = 0; path < 64; ++path) {
      SCOPED_TRACE(path);
      const auto takes = [path](uint32_t n) { return (path >> n % 6 & 1) != 0; };
      testing::Warp compiled(generation()), patched(generation());
      compiled.Walk(before, takes);
      patched.Walk(after, takes);
      EXPECT_EQ(patched.exited, compiled.exited);
      EXPECT_TRUE(patched.hazards.empty()) << patched.hazards.front();
      uint32_t position = testing::Warp::kOldCursor;
      uint32_t records = 0;
      for (const testing::RingStore& store : patched.ring_stores) {
        const uint32_t address = rings + position % (32u << 10);
        EXPECT_EQ(store.address, address);
        position += 16;
        ++records;
      }
      EXPECT_EQ(records, compiled.slots + 2) << "marks, begin and identity";
      if (!patched.exited) continue;
      ASSERT_TRUE(patched.header_stores.contains(header));
      EXPECT_EQ(patched.header_stores.at(header).words[0], position);
    }
  });
}

TEST_P(PatchedCubin, KernelsBeginWithTheEntryCode) {
  const uint32_t constant =
      static_cast<uint32_t>(new_.symbols()[new_.FindSymbol(kWindowSymbol).value()].value);
  for (const FunctionReport& function : patched_.report.functions) {
    if (!function.is_kernel) continue;
    const uint32_t section = SectionOf(old_, function.name);
    const Code before = CodeOf(old_, section);
    const Code after = CodeOf(new_, section);
    ASSERT_TRUE(sass::HasRelativeTarget(after[0]));
    const auto entry = TargetOf(after, 0);
    ASSERT_GE(entry, before.size());
    Code expected = EntryCode({.layout = TestLayout(),
                               .generation = generation(),
                               .kernel = function.number,
                               .constant_offset = constant,
                               .reads_cta_yz = function.reads_cta_yz});
    expected.push_back(before[0]);
    ASSERT_GT(after.size(), entry + expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), after.begin() + entry));
    const size_t back = entry + expected.size();
    EXPECT_EQ(after[back].opcode(), sass::kOpBra);
    EXPECT_EQ(TargetOf(after, back), 1u);
  }
}

TEST_P(PatchedCubin, EveryExitRunsItsStub) {
  ForEachPatchedSection([this](const Code& before, const Code& after, uint32_t, bool) {
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].opcode() != sass::kOpExit) continue;
      size_t stub = i;
      if (after[i].opcode() == sass::kOpBra) {
        EXPECT_EQ(after[i].low & 0xf000, before[i].low & 0xf000) << "another guard";
        EXPECT_EQ(after[i].Bits(87, 4), before[i].Bits(87, 4)) << "another source predicate";
        stub = TargetOf(after, i);
        ASSERT_GE(stub, before.size());
      }
      const auto first_register = static_cast<uint8_t>(after[stub + 1].Bits(16, 8) & ~3u);
      const Code expected = ExitCode(TestLayout(), generation(), first_register);
      ASSERT_LT(stub + expected.size(), after.size());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), after.begin() + stub));
      EXPECT_EQ(after[stub + expected.size()].opcode(), sass::kOpExit);
      EXPECT_TRUE(after[stub + expected.size()].is_unguarded());
    }
  });
}

TEST_P(PatchedCubin, ListsItsExitsAsTheyStand) {
  ForEachPatchedSection([this](const Code&, const Code& after, uint32_t section, bool) {
    std::vector<uint32_t> exits;
    for (uint32_t i = 0; i < after.size(); ++i) {
      if (after[i].opcode() == sass::kOpExit) exits.push_back(i * kInstructionBytes);
    }
    auto listed = cubin::ExitOffsets(new_, section).value();
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, exits);
  });
}

TEST_P(PatchedCubin, HasRegistersForTheEntryCode) {
  const auto functions = cubin::Functions(new_).value();
  for (const cubin::Function& function : functions) {
    // Functions inside a kernel's section have no count of their own.
    const auto stated = cubin::GetRegisterCount(old_, function.symbol);
    if (!stated) continue;
    const uint32_t before = *stated;
    const uint32_t after = cubin::GetRegisterCount(new_, function.symbol).value();
    const bool patched = std::ranges::any_of(
        patched_.report.functions, [&](auto& report) { return report.name == function.name; });
    EXPECT_EQ(after, patched ? std::max(before, kMinRegisters) : before) << function.name;
  }
}

TEST_P(PatchedCubin, FunctionsCoverTheirNewCode) {
  const auto functions = cubin::Functions(new_).value();
  for (const cubin::Function& function : functions) {
    if (!GetParam().kernels.contains(std::string(function.name))) continue;
    EXPECT_EQ(function.size, new_.sections()[function.section].data.size()) << function.name;
  }
}

TEST_P(PatchedCubin, HasOneWindowConstant) {
  const cubin::Symbol& symbol = new_.symbols()[new_.FindSymbol(kWindowSymbol).value()];
  const cubin::Section& section = new_.sections()[symbol.section];
  EXPECT_EQ(section.name, ".nv.constant3");
  EXPECT_EQ(symbol.size, 8u);
  EXPECT_EQ(symbol.value % 8, 0u);
  EXPECT_LE(symbol.value + 8, section.data.size());
  EXPECT_EQ(symbol.bind, cubin::kBindGlobal);
  EXPECT_EQ(new_.symbols().size(), old_.symbols().size() + 1);
}

TEST_P(PatchedCubin, PatchingAgainFindsNothing) {
  const Patched again = PatchOrDie(new_);
  EXPECT_FALSE(again.image);
  EXPECT_TRUE(again.report.functions.empty());
}

// NVIDIA's disassembler reads the whole image, and knows every word of it.
TEST_P(PatchedCubin, Disassembles) {
  const std::string path = ::testing::TempDir() + "iket_patched_" + GetParam().file;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  const Bytes& bytes = *patched_.image;
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fclose(file);
  std::FILE* pipe = popen((std::string(IKET_NVDISASM) + " -c -ndf " + path + " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[4096];
  size_t lines = 0;
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    text += buffer;
    lines += std::string_view(buffer).find("/*") != std::string_view::npos &&
             std::string_view(buffer).find(';') != std::string_view::npos;
  }
  EXPECT_EQ(pclose(pipe), 0) << text;
  size_t words = 0;
  for (const cubin::Section& section : new_.sections()) {
    if (section.name.starts_with(".text.")) words += section.data.size() / kInstructionBytes;
  }
  EXPECT_EQ(lines, words) << text;
  for (const char* complaint : {"fatal", "error", "???", "INVALID"}) {
    EXPECT_EQ(text.find(complaint), std::string::npos) << text;
  }
  std::remove(path.c_str());
}

// The only function of a report that is refused, and why; nothing else may be refused.
std::string RefusalOf(const ImageReport& report, const std::string& name) {
  std::string refusal;
  for (const FunctionReport& function : report.functions) {
    if (function.name == name) {
      refusal = function.refusal;
    } else {
      EXPECT_EQ(function.refusal, "") << function.name;
    }
  }
  return refusal;
}

// Patches an image of which one function must be refused, and nothing be written.
std::string RefusalWithoutImage(const Image& image, const std::string& name) {
  const Patched patched = PatchOrDie(image);
  EXPECT_FALSE(patched.image);
  return RefusalOf(patched.report, name);
}

// An event without its declaration is recorded all the same.
TEST(Undeclared, EventsAreNamedByTheirNumbers) {
  auto bytes = cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/plain.sm_90a.cubin");
  const std::string magic = "IKET";
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const auto at = std::search(text, text + bytes.size(), magic.begin(), magic.end()) - text;
  bytes[static_cast<size_t>(at)] = std::byte{'X'};
  const Patched patched = PatchOrDie(Parse(bytes));
  EXPECT_TRUE(patched.image);
  ASSERT_EQ(patched.report.problems.size(), 2u);
  EXPECT_NE(patched.report.problems[0].find("does not hold a declaration"), std::string::npos);
  EXPECT_NE(patched.report.problems[1].find("of 1 marks is not declared"), std::string::npos);
}

TEST(Refused, OtherArchitectures) {
  const auto for_sm = [](uint8_t sm) {
    auto bytes = cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/plain.sm_80.cubin");
    constexpr size_t kArch = 49;  // the second byte of e_flags
    bytes[kArch] = static_cast<std::byte>(sm);
    return Parse(bytes);
  };
  EXPECT_EQ(RefusalWithoutImage(for_sm(75), "plain"),
            "code for sm_75: this version traces sm_80 and later");
  EXPECT_EQ(RefusalWithoutImage(for_sm(99), "plain"),
            "code for sm_99: this version traces GPUs up to sm_121");
}

TEST(Refused, CodeThatPtxasDidNotOptimise) {
  EXPECT_NE(RefusalWithoutImage(Load("plain.sm_90a.O0.cubin"), "plain").find("no guarded store"),
            std::string::npos);
}

// `plain` with its first instruction of some kind replaced.
template <typename Matches, typename Edit>
Image EditedPlain(Matches matches, Edit edit) {
  Image image = Load(kPlain);
  const uint32_t section = SectionOf(image, "plain");
  Code code = CodeOf(image, section);
  const auto found = std::ranges::find_if(code, matches);
  EXPECT_NE(found, code.end());
  edit(*found);
  SetCode(image, section, code);
  return image;
}
void Guard(Instruction& i) { i.low &= ~uint64_t{0x7000}; }  // @P0

TEST(Refused, CodeThatUsesTheReservedUniformRegisters) {
  const Image image = EditedPlain(
      [](auto& i) {
        return i.opcode() == 0x882; /* UMOV */
      },
      [](Instruction& i) { i.low = (i.low & ~(uint64_t{0xff} << 16)) | uint64_t{3} << 16; });
  EXPECT_EQ(RefusalWithoutImage(image, "plain"),
            "the instruction at 0x20 uses one of UR0..UR3, which marks need");
}

TEST(Refused, StoresWithoutTheirGuard) {
  const auto unguard = [](Instruction& i) { i = i.WithGuard(sass::kPredicateTrue); };
  EXPECT_EQ(
      RefusalWithoutImage(EditedPlain(IsPlain, unguard), "plain"),
      "mark at 0x80 not understood: no guarded store before its slot; code that ptxas did not "
      "optimise (-Xptxas -O0) is not supported");
}

TEST(Refused, GuardedSlots) {
  const auto is_slot = [](auto& i) { return SlotMask(i) == 0xe110; };
  EXPECT_EQ(RefusalWithoutImage(EditedPlain(is_slot, Guard), "plain"),
            "mark at 0x80 not understood: its slot is guarded");
}

TEST(Refused, BranchesToTheFirstInstruction) {
  const Image image =
      EditedPlain([](auto& i) { return i.opcode() == sass::kOpNop; },
                  [](Instruction& i) { i = sass::Bra(kHopper, 0x200, 0, {.stall = 5}); });
  EXPECT_EQ(RefusalWithoutImage(image, "plain"),
            "a branch at 0x200 goes back to its first instruction");
}

TEST(Refused, ImagesThatHaveTheConstantAlready) {
  Image image = Load(kPlain);
  ASSERT_TRUE(image.AddSymbol({.name = kWindowSymbol}));
  const auto patched = PatchImage(image, TestOptions());
  ASSERT_FALSE(patched);
  EXPECT_NE(patched.error().message.find("patched already"), std::string::npos);
}

// A mark whose kernel has no trampoline would store to wherever UR0:UR1 points.
TEST(Refused, SharedFunctionsThatARefusedKernelCanReach) {
  Image image = Load(kCalls);
  const uint32_t refused = SectionOf(image, "calls_unmarked");
  Code code = CodeOf(image, refused);
  code[1] = sass::R2ur(kHopper, 0, 0, {.stall = 13});
  SetCode(image, refused, code);

  const Patched patched = PatchOrDie(image);
  std::map<std::string, std::string> refusals;
  for (const auto& function : patched.report.functions) refusals[function.name] = function.refusal;
  EXPECT_EQ(refusals["calls"], "");
  EXPECT_NE(refusals["_Z6Markedf"].find("kernel calls_unmarked can reach it"), std::string::npos);
  const Image after = Parse(patched.image.value());
  for (const char* untouched : {"_Z6Markedf", "calls_unmarked"}) {
    const uint32_t section = SectionOf(image, untouched);
    EXPECT_EQ(CodeOf(image, section), CodeOf(after, section)) << untouched;
  }
}

TEST(PatchImage, LeavesAnImageWithoutMarksAlone) {
  const Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  const Patched patched = PatchOrDie(image);
  EXPECT_FALSE(patched.image);
  EXPECT_FALSE(patched.report.has_marks());
}

// Whatever happened to the bits: no crash, and what is written can be read.
TEST(PatchImage, SurvivesFlippedBits) {
  EXPECT_GT(testing::PatchFlippedBits({kPlain, "payloads.sm_90a.cubin", "values.sm_90a.cubin",
                                       kCalls, "reach.sm_90a.linked.cubin"},
                                      1, TestOptions()),
            100u);
}

const FunctionReport& Named(const ImageReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.functions, name, &FunctionReport::name);
  EXPECT_NE(found, report.functions.end()) << name;
  return *found;
}

TEST(Choices, AKernelThatNobodyWantsIsLeftAsItWas) {
  Options options = TestOptions();
  options.choose = [](const std::string&) { return Choice{.wanted = false}; };
  const auto patched = PatchImage(Load(kPlain), options);
  ASSERT_TRUE(patched);
  EXPECT_FALSE(patched->image);
  const FunctionReport& kernel = Named(patched->report, "plain");
  EXPECT_TRUE(kernel.left_out);
  EXPECT_FALSE(kernel.has_trampoline);
  EXPECT_EQ(kernel.refusal, "");
}

TEST(Choices, WhatSharesMarkedFunctionsWithOthersRecordsForNobody) {
  Options options = TestOptions();
  options.choose = [](const std::string& name) { return Choice{.wanted = name == "calls"}; };
  const auto patched = PatchImage(Load(kCalls), options);
  ASSERT_TRUE(patched);
  ASSERT_TRUE(patched->image);
  EXPECT_TRUE(Named(patched->report, "calls").filter.passes_all());
  const FunctionReport& other = Named(patched->report, "calls_unmarked");
  EXPECT_TRUE(other.left_out);
  EXPECT_TRUE(other.has_trampoline);
  EXPECT_TRUE(other.filter.nobody);
}

}  // namespace
}  // namespace iket::patch
