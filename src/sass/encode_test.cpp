#include "sass/encode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace iket::sass {
namespace {

constexpr Control kPlain{.stall = 1};

constexpr Generation kHopper = Generation::kHopper;

struct Case {
  Instruction built;
  Instruction expected;  // as nvdisasm 13.5 reads it, and as it ran on an H200
};

// One line a form. The words were taken from nvdisasm, not from the functions under test.
const std::vector<Case>& Cases() {
  using SR = SpecialRegister;
  static const std::vector<Case> kCases = {
      // clang-format off
      {Nop(kPlain), {0x0000000000007918, 0x000fe20000000000}},
      {S2r(12, SR::kCtaIdX, kPlain), {0x00000000000c7919, 0x000fe20000002500}},
      {S2r(2, SR::kVirtualId, kPlain), {0x0000000000027919, 0x000fe20000000300}},
      {S2r(0, SR::kVirtualSmId, kPlain), {0x0000000000007919, 0x000fe20000004300}},
      {S2r(13, SR::kPackedTid, kPlain), {0x00000000000d7919, 0x000fe20000002000}},
      {Cs2r32(8, SR::kClockLow, kPlain), {0x0000000000087805, 0x000fe20000005000}},
      {Cs2r64(10, SR::kGlobalTimerLow, kPlain), {0x00000000000a7805, 0x000fe20000015200}},
      {MovImmediate(9, 0x80000401, kPlain), {0x8000040100097802, 0x000fe20000000f00}},
      {MovFromUniform(8, 2, kPlain), {0x0000000200087c02, 0x000fe20008000f00}},
      {AndImmediate(2, 2, 0x3f00, kPlain), {0x00003f0002027812, 0x000fe200078ec0ff}},
      {OrImmediate(13, 13, 0x80000c00, kPlain), {0x80000c000d0d7812, 0x000fe200078efcff}},
      {TestImmediate(0, 2, 0x1f, kPlain), {0x0000001f02ff7812, 0x000fe2000780c0ff}},
      {TestImmediate(3, 2, 0x1f, kPlain), {0x0000001f02ff7812, 0x000fe2000786c0ff}},
      {Elect(kHopper, 0, kPlain), {0x00000000003f782f, 0x000fe20003800000}},
      {Elect(kHopper, 5, kPlain), {0x00000000003f782f, 0x000fe200038a0000}},
      {ImadImmediate(4, 0, 0x4000, 2, kPlain), {0x0000400000047824, 0x000fe200078e0202}},
      {Imad(0, 5, 4, 2, kPlain), {0x0000000405007224, 0x000fe200078e0202}},
      {AddImmediate(kHopper, 11, 7, 0xfffffff9, kPlain), {0xfffffff9070b7836, 0x000fe20000000000}},
      {RotateRight(0, 0, 2, kPlain), {0x0000000200007819, 0x000fe20000001e00}},
      {CompareImmediate(1, Compare::kGreater, 11, 5, Join::kAnd, 7, kPlain), {0x000000050b00780c, 0x000fe20003f24070}},
      {CompareImmediate(1, Compare::kNotEqual, 10, 9, Join::kOr, 1, kPlain), {0x000000090a00780c, 0x000fe20000f25470}},
      {CompareRegisters(2, Compare::kGreaterOrEqual, 4, 5, Join::kAnd, 7, kPlain), {0x000000050400720c, 0x000fe20003f46070}},
      {SelectImmediate(9, 2, 1, kPlain), {0x00000002ff097807, 0x000fe20004800000}},
      {LoadConstant(kHopper, 15, 0, 0x30, kPlain), {0x00000c00ff0f7b82, 0x000fe20000000800}},
      {LoadUniform64(kHopper, 0, 3, 0x18, kPlain), {0x00c0060000007ab9, 0x000fe20000000a00}},
      {R2ur(kHopper, 3, 4, kPlain), {0x00000000040372ca, 0x000fe200000e0000}},
      {UaddImmediate(kHopper, 2, 2, 16, kPlain), {0x0000001002027890, 0x000fe2000fffe03f}},
      {UmaskOr(0, 2, 0x7fff, 3, kPlain), {0x00007fff02007892, 0x000fe2000f8eea03}},
      {UshiftLeft(kHopper, 3, 3, 7, kPlain), {0x0000000703037899, 0x000fe2000800063f}},
      {UshiftRight(kHopper, 0, 3, 7, kPlain), {0x000000073f007899, 0x000fe20008011603}},
      {Stg(Width::k64, 255, 0, 0, 8, kPlain), {0x00000008ff007986, 0x000fe20008100b00}},
      {Stg(Width::k32, 255, 0, 8, 8, kPlain), {0x00000808ff007986, 0x000fe20008100900}},
      {Stg(Width::k128, 4, 0, -0x800000 + 16, 12, kPlain), {0x8000100c04007986, 0x000fe20008100d00}},
      {StgEvictFirst(Width::k64, 255, 0, 0, 8, kPlain), {0x00000008ff007986, 0x000fe20008000b00}},
      {Ldg(Width::k64, 10, 4, 0, -0x800000, kPlain), {0x80000000040a7981, 0x000fe200081e0b00}},
      {Bra(kHopper, 0, 0x180, kPlain), {0x00000000005c7947, 0x000fe20003800000}},
      {Bra(kHopper, 0x300, 0x10, kPlain), {0xfffffffc00407947, 0x000fe2000383ffff}},
      {Bra(kHopper, 0x10, 0x10, kPlain), {0xfffffffc00fc7947, 0x000fe2000383ffff}},
      {StgEvictFirst(Width::k128, 255, 0, 0, 8, kPlain).WithGuard(2), {0x00000008ff002986, 0x000fe20008000d00}},
      {Stg(Width::k128, 255, 0, 0, 8, kPlain).WithNegatedGuard(0), {0x00000008ff008986, 0x000fe20008100d00}},
      // clang-format on
  };
  return kCases;
}

TEST(Encode, WordsEqualThoseOfNvdisasm) {
  for (const Case& c : Cases()) EXPECT_EQ(c.built, c.expected) << std::hex << c.expected.low;
}

TEST(Encode, ControlSurvives) {
  const Control control{
      .stall = 13, .write_barrier = 2, .read_barrier = 5, .wait = 0x21, .prefer_stay = false};
  EXPECT_EQ(R2ur(kHopper, 2, 10, control).control(), control);
}

TEST(Encode, LongStallsNeverAskToStay) {
  for (uint8_t stall = 1; stall <= 15; ++stall) {
    EXPECT_EQ(Nop({.stall = stall}).control().prefer_stay, stall < 12) << int{stall};
  }
}

#ifdef IKET_NVDISASM
struct Form {
  Form(Instruction built, const char* text) : word(built), texts{text, text, text} {}
  Form(Instruction built, const char* ampere, const char* hopper, const char* blackwell)
      : word(built), texts{ampere, hopper, blackwell} {}

  Instruction word;
  std::array<const char*, 3> texts;  // by generation; null where nothing makes it
};

// Branches say where they lead from byte 0.
std::vector<Form> FormsOf(Generation g) {
  using SR = SpecialRegister;
  return {
      // clang-format off
      {Nop(kPlain), "NOP"},
      {S2r(12, SR::kCtaIdX, kPlain), "S2R R12, SR_CTAID.X"},
      {S2r(5, SR::kCtaIdY, kPlain), "S2R R5, SR_CTAID.Y"},
      {S2r(14, SR::kCtaIdZ, kPlain), "S2R R14, SR_CTAID.Z"},
      {S2r(2, SR::kVirtualId, kPlain), "S2R R2, SR_VIRTID"},
      {S2r(0, SR::kVirtualSmId, kPlain), "S2R R0, SR_VIRTUALSMID"},
      {S2r(13, SR::kPackedTid, kPlain), "S2R R13, SR_TID"},
      {S2r(13, SR::kTidX, kPlain), "S2R R13, SR_TID.X"},
      {S2r(6, SR::kTidY, kPlain), "S2R R6, SR_TID.Y"},
      {S2r(7, SR::kTidZ, kPlain), "S2R R7, SR_TID.Z"},
      {S2r(1, SR::kLaneId, kPlain), "S2R R1, SR_LANEID"},
      {S2r(4, SR::kLowerLanes, kPlain), "S2R R4, SR_LTMASK"},
      {Cs2r32(8, SR::kClockLow, kPlain), "CS2R.32 R8, SR_CLOCKLO"},
      {Cs2r32(10, SR::kGlobalTimerLow, kPlain), "CS2R.32 R10, SR_GLOBALTIMERLO"},
      {Cs2r64(10, SR::kGlobalTimerLow, kPlain), "CS2R R10, SR_GLOBALTIMERLO"},
      {MovImmediate(9, 0x80000401, kPlain), "MOV R9, 0x80000401"},
      {MovFromUniform(8, 2, kPlain), "MOV R8, UR2"},
      {AndImmediate(2, 2, 0x3f00, kPlain), "LOP3.LUT R2, R2, 0x3f00, RZ, 0xc0, !PT"},
      {OrImmediate(13, 13, 0x80000c00, kPlain), "LOP3.LUT R13, R13, 0x80000c00, RZ, 0xfc, !PT"},
      {TestImmediate(3, 2, 0x1f, kPlain), "LOP3.LUT P3, RZ, R2, 0x1f, RZ, 0xc0, !PT"},
      {TestUniform(1, 8, 0, kPlain), "LOP3.LUT P1, RZ, R8, UR0, RZ, 0xc0, !PT"},
      {ActiveLanes(0, kPlain), "VOTEU.ANY UR0, UPT, PT"},
      {VoteUniformAny(g, 5, 1, true, kPlain), "VOTEU.ANY UP5, !P1"},
      {Imad(0, 5, 4, 2, kPlain), "IMAD R0, R5, R4, R2"},
      {ImadImmediate(4, 0, 0x4000, 2, kPlain), "IMAD R4, R0, 0x4000, R2"},
      {AddImmediate(g, 11, 7, 0xfffffff9, kPlain), "IADD3 R11, R7, -0x7, RZ", "VIADD R11, R7, 0xfffffff9", "IADD3 R11, PT, PT, R7, -0x7, RZ"},
      {RotateRight(0, 0, 2, kPlain), "SHF.R.W.U32 R0, R0, 0x2, R0"},
      {CompareImmediate(1, Compare::kGreater, 11, 5, Join::kAnd, 7, kPlain), "ISETP.GT.U32.AND P1, PT, R11, 0x5, PT"},
      {CompareImmediate(1, Compare::kNotEqual, 10, 9, Join::kOr, 1, kPlain), "ISETP.NE.U32.OR P1, PT, R10, 0x9, P1"},
      {CompareRegisters(2, Compare::kGreaterOrEqual, 4, 5, Join::kAnd, 7, kPlain), "ISETP.GE.U32.AND P2, PT, R4, R5, PT"},
      {SelectImmediate(9, 2, 1, kPlain), "SEL R9, RZ, 0x2, !P1"},
      {LoadConstant(g, 15, 0, 0x30, kPlain), "MOV R15, c[0x0][0x30]", "LDC R15, c[0x0][0x30]", "LDC R15, c[0x0][0x30]"},
      {LoadUniform64(g, 0, 3, 0x18, kPlain), "ULDC.64 UR0, c[0x3][0x18]", "ULDC.64 UR0, c[0x3][0x18]", "LDCU.64 UR0, c[0x3][0x18]"},
      {R2ur(g, 3, 4, kPlain), "R2UR UR3, R4"},
      {UaddImmediate(g, 2, 2, 16, kPlain), "UIADD3 UR2, UR2, 0x10, URZ", "UIADD3 UR2, UR2, 0x10, URZ", "UIADD3 UR2, UPT, UPT, UR2, 0x10, URZ"},
      {UmaskOr(0, 2, 0x7fff, 3, kPlain), "ULOP3.LUT UR0, UR2, 0x7fff, UR3, 0xea, !UPT"},
      {UshiftLeft(g, 3, 3, 7, kPlain), "USHF.L.U32 UR3, UR3, 0x7, URZ"},
      {UshiftRight(g, 0, 3, 7, kPlain), "USHF.R.U32.HI UR0, URZ, 0x7, UR3"},
      {Stg(Width::k64, 255, 0, 0, 8, kPlain), "STG.E.64 [UR0], R8", "STG.E.64 [RZ.U32+UR0], R8", "STG.E.64 [RZ.U32+UR0], R8"},
      {Stg(Width::k32, 255, 0, 8, 8, kPlain), "STG.E [UR0+0x8], R8", "STG.E [RZ.U32+UR0+0x8], R8", "STG.E [RZ.U32+UR0+0x8], R8"},
      {Stg(Width::k128, 4, 0, -0x800000 + 16, 12, kPlain), "STG.E.128 [R4.U32+UR0+-0x7ffff0], R12"},
      {StgEvictFirst(Width::k128, 255, 0, 0, 8, kPlain).WithNegatedGuard(1), "@!P1 STG.E.EF.128 [UR0], R8", "@!P1 STG.E.EF.128 [RZ.U32+UR0], R8", "@!P1 STG.E.EF.128 [RZ.U32+UR0], R8"},
      {StgEvictFirst(Width::k64, 255, 0, 0, 8, kPlain).WithGuard(2), "@P2 STG.E.EF.64 [UR0], R8", "@P2 STG.E.EF.64 [RZ.U32+UR0], R8", "@P2 STG.E.EF.64 [RZ.U32+UR0], R8"},
      {Ldg(Width::k64, 10, 4, 0, -0x800000, kPlain), "LDG.E.64 R10, [R4.U32+UR0+-0x800000]"},
      {Elect(g, 5, kPlain), nullptr, "ELECT P5, URZ, PT", "ELECT P5, URZ, PT"},
      {LoadConstantAt(1, 1, 0, 0x2a4, kPlain), nullptr, "LDC R1, c[0x0][R1+0x2a4]", "LDC R1, c[0x0][R1+0x2a4]"},
      {Cs2r32(1, SR::kClusterKind, kPlain), nullptr, nullptr, "CS2R.32 R1, SR_CgaSize"},
      {Bra(g, 0, 0x180, kPlain), "BRA <0x180>"},
      {Bra(g, 0x300, 0x10, kPlain), "BRA <-0x2f0>"},
      {Bra(g, 0x10, 0x10, kPlain), "BRA <0x0>"},
      // clang-format on
  };
}

std::string OutputOf(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  return pclose(pipe) == 0 ? output : output + "(failed)";
}

// The referee, where it is installed: on every architecture it must read each word as the text
// says.
class Referee : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Architectures, Referee,
                         ::testing::Values(80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121),
                         ::testing::PrintToStringParamName());

TEST_P(Referee, ReadsWordsAsMeant) {
  const Generation generation = GenerationOf(GetParam()).value();
  const std::string path = ::testing::TempDir() + "iket_words_" + std::to_string(GetParam());
  std::vector<Instruction> words;
  std::vector<std::string> expected;
  for (const Form& form : FormsOf(generation)) {
    const char* const text = form.texts[static_cast<size_t>(generation)];
    if (text == nullptr) continue;
    std::string line = text;
    if (const size_t at = line.find('<'); at != std::string::npos) {  // from where it stands
      const auto target = std::stol(line.substr(at + 1), nullptr, 16) +
                          static_cast<long>(words.size() * kInstructionBytes);
      line = line.substr(0, at) + fmt::format("{:#x}", target);
    }
    words.push_back(form.word);
    expected.push_back(line + " ;");
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(words.data(), kInstructionBytes, words.size(), file), words.size());
  std::fclose(file);
  const std::string output =
      OutputOf(fmt::format("{} -b SM{} {} 2>&1", IKET_NVDISASM, GetParam(), path));
  size_t from = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string at = fmt::format("/*{:04x}*/", i * kInstructionBytes);
    const size_t found = output.find(at, from);
    ASSERT_NE(found, std::string::npos) << at << " is missing in:\n" << output;
    from = found + at.size();
    const size_t begin = output.find_first_not_of(' ', from);
    EXPECT_EQ(output.substr(begin, output.find('\n', begin) - begin).substr(0, expected[i].size()),
              expected[i]);
  }
}
#endif

}  // namespace
}  // namespace iket::sass
