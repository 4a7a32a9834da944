#include "sass/encode.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace iket::sass {
namespace {

constexpr Control kPlain{.stall = 1};

struct Case {
  Instruction built;
  Instruction expected;  // as nvdisasm 13.5 reads it, and as it ran on an H200
  const char* text;
};

// One line a form. The words were taken from nvdisasm, not from the functions under test.
const std::vector<Case>& Cases() {
  using SR = SpecialRegister;
  static const std::vector<Case> cases = {
      // clang-format off
      {Nop(kPlain), {0x0000000000007918, 0x000fe20000000000}, "NOP"},
      {S2r(12, SR::kCtaIdX, kPlain), {0x00000000000c7919, 0x000fe20000002500}, "S2R R12, SR_CTAID.X"},
      {S2r(2, SR::kVirtualId, kPlain), {0x0000000000027919, 0x000fe20000000300}, "S2R R2, SR_VIRTID"},
      {S2r(0, SR::kVirtualSmId, kPlain), {0x0000000000007919, 0x000fe20000004300}, "S2R R0, SR_VIRTUALSMID"},
      {S2r(13, SR::kPackedTid, kPlain), {0x00000000000d7919, 0x000fe20000002000}, "S2R R13, SR_TID"},
      {Cs2r32(8, SR::kClockLow, kPlain), {0x0000000000087805, 0x000fe20000005000}, "CS2R.32 R8, SR_CLOCKLO"},
      {Cs2r64(10, SR::kGlobalTimerLow, kPlain), {0x00000000000a7805, 0x000fe20000015200}, "CS2R R10, SR_GLOBALTIMERLO"},
      {MovImmediate(9, 0x80000401, kPlain), {0x8000040100097802, 0x000fe20000000f00}, "MOV R9, 0x80000401"},
      {MovFromUniform(8, 2, kPlain), {0x0000000200087c02, 0x000fe20008000f00}, "MOV R8, UR2"},
      {AndImmediate(2, 2, 0x3f00, kPlain), {0x00003f0002027812, 0x000fe200078ec0ff}, "LOP3.LUT R2, R2, 0x3f00, RZ, 0xc0, !PT"},
      {OrImmediate(13, 13, 0x80000c00, kPlain), {0x80000c000d0d7812, 0x000fe200078efcff}, "LOP3.LUT R13, R13, 0x80000c00, RZ, 0xfc, !PT"},
      {TestImmediate(0, 2, 0x1f, kPlain), {0x0000001f02ff7812, 0x000fe2000780c0ff}, "LOP3.LUT P0, RZ, R2, 0x1f, RZ, 0xc0, !PT"},
      {TestImmediate(3, 2, 0x1f, kPlain), {0x0000001f02ff7812, 0x000fe2000786c0ff}, "LOP3.LUT P3, RZ, R2, 0x1f, RZ, 0xc0, !PT"},
      {Elect(0, kPlain), {0x00000000003f782f, 0x000fe20003800000}, "ELECT P0, URZ, PT"},
      {Elect(5, kPlain), {0x00000000003f782f, 0x000fe200038a0000}, "ELECT P5, URZ, PT"},
      {ImadImmediate(4, 0, 0x4000, 2, kPlain), {0x0000400000047824, 0x000fe200078e0202}, "IMAD R4, R0, 0x4000, R2"},
      {Imad(0, 5, 4, 2, kPlain), {0x0000000405007224, 0x000fe200078e0202}, "IMAD R0, R5, R4, R2"},
      {AddImmediate(11, 7, 0xfffffff9, kPlain), {0xfffffff9070b7836, 0x000fe20000000000}, "VIADD R11, R7, 0xfffffff9"},
      {RotateRight(0, 0, 2, kPlain), {0x0000000200007819, 0x000fe20000001e00}, "SHF.R.W.U32 R0, R0, 0x2, R0"},
      {CompareImmediate(1, Compare::kGreater, 11, 5, Join::kAnd, 7, kPlain), {0x000000050b00780c, 0x000fe20003f24070}, "ISETP.GT.U32.AND P1, PT, R11, 0x5, PT"},
      {CompareImmediate(1, Compare::kNotEqual, 10, 9, Join::kOr, 1, kPlain), {0x000000090a00780c, 0x000fe20000f25470}, "ISETP.NE.U32.OR P1, PT, R10, 0x9, P1"},
      {CompareRegisters(2, Compare::kGreaterOrEqual, 4, 5, Join::kAnd, 7, kPlain), {0x000000050400720c, 0x000fe20003f46070}, "ISETP.GE.U32.AND P2, PT, R4, R5, PT"},
      {SelectImmediate(9, 2, 1, kPlain), {0x00000002ff097807, 0x000fe20004800000}, "SEL R9, RZ, 0x2, !P1"},
      {Ldc(15, 0, 0x30, kPlain), {0x00000c00ff0f7b82, 0x000fe20000000800}, "LDC R15, c[0x0][0x30]"},
      {Uldc64(0, 3, 0x18, kPlain), {0x00c0060000007ab9, 0x000fe20000000a00}, "ULDC.64 UR0, c[0x3][0x18]"},
      {R2ur(3, 4, kPlain), {0x00000000040372ca, 0x000fe200000e0000}, "R2UR UR3, R4"},
      {UaddImmediate(2, 2, 16, kPlain), {0x0000001002027890, 0x000fe2000fffe03f}, "UIADD3 UR2, UR2, 0x10, URZ"},
      {UmaskOr(0, 2, 0x7fff, 3, kPlain), {0x00007fff02007892, 0x000fe2000f8eea03}, "ULOP3.LUT UR0, UR2, 0x7fff, UR3, 0xea, !UPT"},
      {UshiftLeft(3, 3, 7, kPlain), {0x0000000703037899, 0x000fe2000800063f}, "USHF.L.U32 UR3, UR3, 0x7, URZ"},
      {UshiftRight(0, 3, 7, kPlain), {0x000000073f007899, 0x000fe20008011603}, "USHF.R.U32.HI UR0, URZ, 0x7, UR3"},
      {Stg(Width::k64, 255, 0, 0, 8, kPlain), {0x00000008ff007986, 0x000fe20008100b00}, "STG.E.64 [RZ.U32+UR0], R8"},
      {Stg(Width::k32, 255, 0, 8, 8, kPlain), {0x00000808ff007986, 0x000fe20008100900}, "STG.E [RZ.U32+UR0+0x8], R8"},
      {Stg(Width::k128, 4, 0, -0x800000 + 16, 12, kPlain), {0x8000100c04007986, 0x000fe20008100d00}, "STG.E.128 [R4.U32+UR0+-0x7ffff0], R12"},
      {StgEvictFirst(Width::k64, 255, 0, 0, 8, kPlain), {0x00000008ff007986, 0x000fe20008000b00}, "STG.E.EF.64 [RZ.U32+UR0], R8"},
      {Ldg(Width::k64, 10, 4, 0, -0x800000, kPlain), {0x80000000040a7981, 0x000fe200081e0b00}, "LDG.E.64 R10, [R4.U32+UR0+-0x800000]"},
      {Bra(0, 0x180, kPlain), {0x00000000005c7947, 0x000fe20003800000}, "BRA 0x180"},
      {Bra(0x300, 0x10, kPlain), {0xfffffffc00407947, 0x000fe2000383ffff}, "BRA -0x2f0"},
      {Bra(0x10, 0x10, kPlain), {0xfffffffc00fc7947, 0x000fe2000383ffff}, "BRA 0x0"},
      {StgEvictFirst(Width::k128, 255, 0, 0, 8, kPlain).WithGuard(2), {0x00000008ff002986, 0x000fe20008000d00}, "@P2 STG.E.EF.128 [RZ.U32+UR0], R8"},
      {Stg(Width::k128, 255, 0, 0, 8, kPlain).WithNegatedGuard(0), {0x00000008ff008986, 0x000fe20008100d00}, "@!P0 STG.E.128 [RZ.U32+UR0], R8"},
      // clang-format on
  };
  return cases;
}

TEST(Encode, WordsEqualThoseOfNvdisasm) {
  for (const Case& c : Cases()) EXPECT_EQ(c.built, c.expected) << c.text;
}

TEST(Encode, ControlSurvives) {
  const Control control{
      .stall = 13, .write_barrier = 2, .read_barrier = 5, .wait = 0x21, .prefer_stay = false};
  EXPECT_EQ(R2ur(2, 10, control).control(), control);
}

TEST(Encode, LongStallsNeverAskToStay) {
  for (uint8_t stall = 1; stall <= 15; ++stall) {
    EXPECT_EQ(Nop({.stall = stall}).control().prefer_stay, stall < 12) << int{stall};
  }
}

#ifdef IKET_NVDISASM
// The referee itself, where it is installed: it must read each word as the text says.
TEST(Encode, NvdisasmReadsThemBack) {
  const std::string path = ::testing::TempDir() + "iket_encode_word.bin";
  for (const Case& c : Cases()) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(&c.built, 1, kInstructionBytes, file), kInstructionBytes);
    std::fclose(file);
    const std::string command = std::string(IKET_NVDISASM) + " -b SM90 " + path + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    char buffer[256];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
    ASSERT_EQ(pclose(pipe), 0) << output;
    EXPECT_NE(output.find(std::string(c.text) + " ;"), std::string::npos)
        << "expected " << c.text << " in:\n"
        << output;
  }
}
#endif

}  // namespace
}  // namespace iket::sass
