// The rule against a slow reference on random call graphs, and call graphs of compiled images.
#include "patch/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "cubin/testing.h"
#include "patch/patch.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using cubin::Image;
using sass::Instruction;

// What reaches what, by closing the relation under composition.
using Matrix = std::vector<std::vector<bool>>;
Matrix Closure(const CallGraph& graph) {
  const size_t count = graph.callees.size();
  Matrix reaches(count, std::vector<bool>(count));
  for (size_t i = 0; i < count; ++i) {
    reaches[i][i] = true;
    for (uint32_t callee : graph.callees[i]) reaches[i][callee] = true;
  }
  for (size_t via = 0; via < count; ++via) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        if (reaches[i][via] && reaches[via][j]) reaches[i][j] = true;
      }
    }
  }
  return reaches;
}

// The rules one at a time, until none applies.
struct Reference {
  std::vector<bool> wanted, refused;
};
Reference DecideSlowly(const std::vector<CallNode>& nodes, const CallGraph& graph) {
  const Matrix reaches = Closure(graph);
  const size_t count = nodes.size();
  Reference r{std::vector<bool>(count), std::vector<bool>(count)};
  for (size_t i = 0; i < count; ++i) r.refused[i] = !nodes[i].can_be_patched;
  // Of nothing but kernels that are left out.
  const auto is_unwanted = [&](size_t i) {
    bool by_left_out = false, by_others = false;
    for (size_t j = 0; j < count; ++j) {
      if (nodes[j].is_kernel && reaches[j][i]) {
        (nodes[j].left_out ? by_left_out : by_others) = true;
      }
    }
    return by_left_out && !by_others;
  };
  for (bool again = true; again;) {
    again = false;
    r.wanted.assign(count, false);
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < count; ++i) {
        bool want = nodes[i].has_marks && !is_unwanted(i);
        for (size_t j = 0; j < count; ++j) {
          want |= nodes[i].is_kernel && r.wanted[j] && reaches[i][j];
          want |= !nodes[i].is_kernel && nodes[i].ends_warps && nodes[j].is_kernel && r.wanted[j] &&
                  reaches[j][i];
        }
        if (want && !r.refused[i] && !r.wanted[i]) more = r.wanted[i] = true;
      }
    }
    const std::vector<bool> before = r.refused;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        if (!r.wanted[i]) continue;
        if (nodes[j].is_kernel && before[j] && reaches[j][i]) again = r.refused[i] = true;
        if (!nodes[i].is_kernel || nodes[j].is_kernel || !reaches[i][j]) continue;
        if (nodes[j].breaks_ring_state) again = r.refused[i] = true;
        if (nodes[j].ends_warps && before[j]) again = r.refused[i] = true;
      }
    }
  }
  return r;
}

TEST(Decide, AgreesWithTheSlowReference) {
  std::mt19937 random(1);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  const auto chance = [&](uint32_t one_in) { return draw(one_in) == 0; };
  std::map<Cause, int> causes;
  for (int round = 0; round < 6000; ++round) {
    const uint32_t count = 1 + draw(12);
    std::vector<CallNode> nodes(count);
    for (CallNode& node : nodes) {
      node.is_kernel = chance(2);
      node.has_marks = chance(3);
      node.left_out = node.is_kernel && chance(4);
      node.ends_warps = node.is_kernel || chance(5);
      node.can_be_patched = !chance(8);
      node.breaks_ring_state = !node.can_be_patched && chance(3);
    }
    CallGraph graph;
    graph.callees.resize(count + 2);
    for (uint32_t i = 0; i < count * 3 / 2; ++i) {
      const uint32_t callee = draw(count + 2);
      if (callee < count && nodes[callee].is_kernel) continue;
      graph.Add(draw(count + 2), callee);
    }
    const auto decisions = Decide(nodes, graph);
    const Reference reference = DecideSlowly(nodes, graph);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(decisions[i].patch, reference.wanted[i]) << "round " << round << ", node " << i;
      EXPECT_EQ(decisions[i].refused, reference.refused[i]) << "round " << round << ", node " << i;
      ++causes[decisions[i].cause];
    }
  }
  // Each rule was at work.
  EXPECT_GT(causes[Cause::kKernel], 100);
  EXPECT_GT(causes[Cause::kBreaksState], 100);
  EXPECT_GT(causes[Cause::kUnrecordedEnds], 100);
  EXPECT_EQ(causes[Cause::kEntangled], 0);
}

// Kernel n ends in functions n and n + 1; the first cannot be patched, so none can.
TEST(Decide, GivesUpOnChainsOfRefusals) {
  constexpr uint32_t kLength = 1000;
  std::vector<CallNode> nodes;
  CallGraph graph;
  graph.callees.resize(2 * kLength + 2);
  for (uint32_t i = 0; i < kLength; ++i) {
    nodes.push_back({.is_kernel = true, .has_marks = true, .ends_warps = true});
    nodes.push_back({.ends_warps = true, .can_be_patched = i != 0});
    graph.Add(2 * i, 2 * i + 1);
    if (i + 1 < kLength) graph.Add(2 * i, 2 * i + 3);
  }
  const auto decisions = Decide(nodes, graph);
  EXPECT_TRUE(std::none_of(decisions.begin(), decisions.end(), [](auto& d) { return d.patch; }));
  EXPECT_EQ(decisions[0].cause, Cause::kUnrecordedEnds);
  EXPECT_EQ(decisions.back().cause, Cause::kEntangled);
}

// --- compiled images ---------------------------------------------------------------------------

Image Load(const std::string& file) {
  const auto bytes = cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/" + file);
  auto image = Image::Parse(UntrustedBytes(bytes));
  EXPECT_TRUE(image) << image.error().message;
  return std::move(image).value();
}

std::vector<CodeSection> SectionsOf(const Image& image) {
  std::map<uint32_t, std::vector<cubin::Function>> members;
  const auto all = cubin::Functions(image).value();
  for (const cubin::Function& function : all) {
    members[function.section].push_back(function);
  }
  const auto registers = cubin::RegisterCounts(image);
  std::vector<CodeSection> sections;
  for (auto& [section, functions] : members) {
    sections.push_back(AnalyzeCode(image, section, functions, registers).value());
  }
  return sections;
}

// What the compiler lists in .nv.callgraph is a referee that shares no code with the finder.
class CompiledImage : public ::testing::TestWithParam<const char*> {};
TEST_P(CompiledImage, HasNoCallThatIsNotFound) {
  const Image image = Load(GetParam());
  const auto sections = SectionsOf(image);
  const Matrix reaches = Closure(FindCalls(image, sections));
  const auto listed = cubin::ReadCallGraph(image).value();
  std::map<uint32_t, uint32_t> node_of;
  for (uint32_t i = 0; i < sections.size(); ++i) node_of[sections[i].section] = i;
  const auto node = [&](uint32_t symbol) { return node_of.find(image.symbols()[symbol].section); };
  int compared = 0;
  std::vector<cubin::Call> calls = listed.direct;
  calls.insert(calls.end(), listed.indirect.begin(), listed.indirect.end());
  for (const cubin::Call& call : calls) {
    const auto caller = node(call.caller), callee = node(call.callee);
    if (caller == node_of.end() || callee == node_of.end()) continue;  // the driver's functions
    if (sections[callee->second].is_kernel()) continue;                // launched, if anything
    EXPECT_TRUE(reaches[caller->second][callee->second])
        << image.symbols()[call.caller].name << " calls " << image.symbols()[call.callee].name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}
INSTANTIATE_TEST_SUITE_P(, CompiledImage,
                         ::testing::Values("cubin/pointers.sm_90a.linked.cubin",
                                           "cubin/pointers.sm_90a.rdc.cubin",
                                           "patch/calls.sm_90a.linked.cubin",
                                           "patch/reach.sm_90a.linked.cubin"));

// Of the functions that a report shows: why they are refused, or nothing.
std::map<std::string, std::string> FatesOf(const Image& image) {
  const auto layout = ring::MakeLayout(32 << 10, 132).value();
  const auto patched = PatchImage(image, {.layout = layout, .first_kernel = 1}).value();
  std::map<std::string, std::string> fates;
  for (const FunctionReport& function : patched.report.functions) {
    fates[function.name] = function.refusal;
  }
  return fates;
}

constexpr char kReach[] = "patch/reach.sm_90a.linked.cubin";
constexpr char kShared[] = "_Z6Sharedf", kAlone[] = "_Z5Alonef", kPointee[] = "_Z7Pointeef",
               kEnds[] = "_Z4Endsf";

TEST(PatchImage, PatchesWhatOnlyKernelsWithATrampolineReach) {
  const auto fates = FatesOf(Load(kReach));
  std::set<std::string> names;
  for (const auto& [name, fate] : fates) names.insert(name);
  // calls_none and names_kernel reach no mark: they are not touched.
  EXPECT_EQ(names, (std::set<std::string>{"calls_both", "calls_alone", "calls_pointer",
                                          "calls_ends", "calls_ends_only", "unoptimised", kShared,
                                          kAlone, kPointee, kEnds}));
  for (const char* name : {"calls_both", "calls_alone", "calls_pointer", "calls_ends",
                           "calls_ends_only", kAlone, kPointee, kEnds}) {
    EXPECT_EQ(fates.at(name), "") << name;
  }
  const ImageReport report = Inspect(Load(kReach)).value();
  for (const FunctionReport& function : report.functions) {
    EXPECT_EQ(function.has_trampoline, function.is_kernel && function.name != "unoptimised")
        << function.name;
  }
  EXPECT_NE(fates.at("unoptimised").find("ptxas did not optimise"), std::string::npos);
  EXPECT_NE(fates.at(kShared).find("kernel unoptimised can reach it and is not patched: mark at"),
            std::string::npos)
      << fates.at(kShared);
}

// Puts an instruction that writes UR1 into a function, in place of its last padding.
void BreakRingState(Image& image, const std::string& function) {
  const uint32_t section = image.FindSection(".text." + function).value();
  auto code = DecodeCode(image.sections()[section].data).value();
  code.back() = sass::UaddImmediate(sass::Generation::kHopper, 1, 1, 16, {.stall = 1});
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(section, {bytes.begin(), bytes.end()}));
}

TEST(PatchImage, RefusesKernelsThatReachCodeWhichBreaksTheRingState) {
  Image image = Load(kReach);
  BreakRingState(image, kEnds);
  const auto fates = FatesOf(image);
  EXPECT_EQ(fates.at("calls_ends"),
            "it can reach _Z4Endsf, which uses one of UR0..UR3, which marks need");
  EXPECT_EQ(fates.count("calls_ends_only"), 0u);  // has no marks, and is left alone
  EXPECT_EQ(fates.at("calls_alone"), "");
}

TEST(PatchImage, RefusesAPointedAtFunctionIfAnyCallerOfPointersIsRefused) {
  Image image = Load(kReach);
  BreakRingState(image, "calls_pointer");
  const auto fates = FatesOf(image);
  EXPECT_NE(fates.at(kPointee).find("kernel calls_pointer can reach it and is not patched"),
            std::string::npos)
      << fates.at(kPointee);
  EXPECT_EQ(fates.at(kAlone), "");
}

TEST(PatchImage, TakesACallThatNoRelocationExplainsForACallOfEverything) {
  Image image = Load(kReach);
  const uint32_t section = image.FindSection(".text.calls_none").value();
  auto code = DecodeCode(image.sections()[section].data).value();
  code.back() = Instruction{0x943 | 0x7000, 0};  // CALL.ABS
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(section, {bytes.begin(), bytes.end()}));
  const auto fates = FatesOf(image);
  EXPECT_EQ(fates.at("calls_none"), "");
  EXPECT_NE(fates.at(kShared), "");
}

TEST(PatchImage, ReplacesNoInstructionThatARelocationChanges) {
  Image image = Load(kReach);
  for (uint32_t i = 0; i < image.sections().size(); ++i) {
    const cubin::Section& section = image.sections()[i];
    if (section.name != ".rela.text.calls_both") continue;
    std::vector<std::byte> data(section.data.begin(), section.data.end());
    std::fill_n(data.begin(), sizeof(uint64_t), std::byte{0});  // the first one's offset
    ASSERT_TRUE(image.SetSectionData(i, std::move(data)));
  }
  const auto layout = ring::MakeLayout(32 << 10, 132).value();
  const auto patched = PatchImage(image, {.layout = layout, .first_kernel = 1});
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().message,
            "calls_both: a relocation applies to the instruction at 0x0, which has to be replaced");
}

}  // namespace
}  // namespace iket::patch
