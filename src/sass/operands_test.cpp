#include "sass/operands.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include "sass/decode.h"
#include "sass/encode.h"

namespace iket::sass {
namespace {

constexpr Generation kAmpere = Generation::kAmpere;
constexpr Generation kHopper = Generation::kHopper;
constexpr Generation kBlackwell = Generation::kBlackwell;

TEST(ReservedUniforms, WritersOfUr0ToUr3) {
  EXPECT_TRUE(MayUseReservedUniforms(R2ur(kHopper, 3, 4, {}), kHopper));
  EXPECT_TRUE(MayUseReservedUniforms(UaddImmediate(kHopper, 0, 9, 1, {}), kHopper));
  EXPECT_TRUE(MayUseReservedUniforms(LoadUniform64(kHopper, 2, 0, 0x210, {}), kHopper));
  EXPECT_FALSE(MayUseReservedUniforms(R2ur(kHopper, 4, 0, {}), kHopper));
  EXPECT_FALSE(MayUseReservedUniforms(UaddImmediate(kHopper, 4, 9, 1, {}), kHopper));
}

// The decoder's table says of each opcode whether it writes a uniform register.
TEST(ReservedUniforms, NoWriterInTheTableIsMissed) {
  int writers = 0;
  for (const OpcodeRow& row : OpcodeTable()) {
    if (std::string_view(row.operands).find('D') == std::string_view::npos) continue;
    const Instruction writes_ur1{row.opcode | 0x7000u | 1u << 16, uint64_t{1} << (91 - 64)};
    EXPECT_TRUE(MayUseReservedUniforms(writes_ur1, kHopper)) << row.mnemonic;
    ++writers;
  }
  EXPECT_GT(writers, 20);
}

// From sm_100 on uniform registers have eight bits, and more instructions write them.
TEST(ReservedUniforms, OfBlackwell) {
  EXPECT_TRUE(MayUseReservedUniforms(UaddImmediate(kBlackwell, 2, 2, 16, {}), kBlackwell));
  EXPECT_TRUE(MayUseReservedUniforms(LoadUniform64(kBlackwell, 0, 3, 24, {}), kBlackwell));
  EXPECT_FALSE(MayUseReservedUniforms(UaddImmediate(kBlackwell, 66, 2, 16, {}), kBlackwell));
  EXPECT_FALSE(MayUseReservedUniforms(LoadUniform64(kBlackwell, 64, 3, 24, {}), kBlackwell));
  // CS2UR.32 UR2, SR_CLOCKLO and UVIMNMX.U32 UR1, UR1, 0x10: sm_120.
  EXPECT_TRUE(MayUseReservedUniforms({0x00000000000278cb, 0x000fe20000005000}, kBlackwell));
  EXPECT_TRUE(MayUseReservedUniforms({0x000000100101784a, 0x000fe2000bfe0000}, kBlackwell));
  EXPECT_FALSE(MayUseReservedUniforms({0x000000100105784a, 0x000fe2000bfe0000}, kBlackwell));
  // ISETP.GE.U32.AND P1, PT, R6, UR6, PT: no uniform result. MOV R2, UR8; LDG.E R2, desc[UR4][..].
  EXPECT_FALSE(MayUseReservedUniforms({0x0000000606007c0c, 0x008fe4000bf26070}, kBlackwell));
  EXPECT_FALSE(MayUseReservedUniforms(MovFromUniform(2, 8, {}), kBlackwell));
  EXPECT_FALSE(MayUseReservedUniforms(Ldg(Width::k64, 2, 4, 4, 0, {}), kBlackwell));
}

TEST(Readers, AnyPlaceThatHasTheRegister) {
  EXPECT_TRUE(MayReadRegister(AndImmediate(2, 8, 31, {}), 8));
  EXPECT_FALSE(MayReadRegister(AndImmediate(8, 2, 0xff0000ff, {}), 20));
  EXPECT_TRUE(MayReadRegister(Stg(Width::k128, 255, 4, 0, 20, {}), 23));
  EXPECT_FALSE(MayReadRegister(Stg(Width::k128, 255, 4, 0, 20, {}), 19));
  // ISETP.NE.U32.AND P0, PT, RZ, c[0x0][0x10c], PT and MOV R7, R8.
  EXPECT_FALSE(MayReadRegister({0x00004300ff007a0c, 0x000fc80003f05070}, 20));
  // UISETP.NE.U32.AND UP0, UPT, URZ, UR4, UPT: no general register.
  EXPECT_FALSE(MayReadRegister({0x000000043f00728c, 0x000fe2000bf05070}, 4));
  EXPECT_TRUE(MayReadRegister({0x0000000800077202, 0x000fe20000000f00}, 8));
  // UTMALDG.3D [UR16], [UR24], desc[URZ] and WARPGROUP.ARRIVE: none.
  EXPECT_FALSE(MayReadRegister({0x00003f10180075b4, 0x000fe40008011000}, 24));
  EXPECT_FALSE(MayReadRegister({0x00000000000079c5, 0x000fe20000000000}, 0));
  // STSM.16.M88.4 [R4], R24: an address of one register.
  constexpr Instruction kStsm{0x0000001804007844, 0x0001e40000000200};
  EXPECT_TRUE(MayReadRegister(kStsm, 4));
  EXPECT_FALSE(MayReadRegister(kStsm, 5));
  EXPECT_TRUE(MayReadRegister(kStsm, 27));
  EXPECT_FALSE(MayReadRegister(kStsm, 28));
  // P2R R42, PR, RZ, 0x20: predicates, by a mask.
  EXPECT_FALSE(MayReadRegister({0x00000020ff2a7803, 0x000fe40000000000}, 36));
  EXPECT_FALSE(MayReadRegister({0x00000020ff2a7803, 0x000fe40000000000}, 3));
  EXPECT_TRUE(MayReadRegister({0x00000020242a7803, 0x000fe40000000000}, 36));
}

// Of every opcode that is known, whatever its operands are.
TEST(NamedRegisters, HoldsAllThatMayBeReadOrWritten) {
  std::mt19937_64 random(3);
  for (const OpcodeRow& row : OpcodeTable()) {
    for (int round = 0; round < 40; ++round) {
      uint64_t low = (random() & ~uint64_t{0xfff}) | row.opcode;
      if (row.any_form) low |= (1 + random() % 7) << 9;
      const Instruction instruction{low, random()};
      const RegisterSet named = NamedRegisters(instruction);
      for (uint32_t r = 0; r < kRegisterZero; ++r) {
        if (named[r]) continue;
        // Where a uniform register takes part it is in the last place of a memory instruction.
        const bool is_memory = instruction.base_opcode() >= 0x160 && !row.any_form;
        if (is_memory && instruction.is_uniform_form()) continue;
        if (is_memory) {
          EXPECT_FALSE(MayReadRegister(instruction, r) && instruction.Bits(24, 8) <= r &&
                       r < instruction.Bits(24, 8) + 4)
              << row.mnemonic;
          continue;
        }
        ASSERT_FALSE(MayReadRegister(instruction, r)) << row.mnemonic << " R" << r;
        ASSERT_FALSE(MayWriteRegister(instruction, r)) << row.mnemonic << " R" << r;
      }
    }
  }
}

TEST(NamedRegisters, OfMemoryAndMatrices) {
  // STS [UR5+0x3f0], R2: the uniform register is no general one.
  const Instruction store{0x0003f002ff007988, 0x0001e20008000805};
  EXPECT_TRUE(NamedRegisters(store)[2]);
  EXPECT_FALSE(NamedRegisters(store)[8]);
  // HGMMA.64x256x16.F32 R24, gdesc[UR16], R24, UP0.
  const Instruction matrix{0x03e00000101879f0, 0x000fe20008700818};
  for (const uint32_t r : {24u, 100u, 151u}) EXPECT_TRUE(NamedRegisters(matrix)[r]);
  EXPECT_FALSE(NamedRegisters(matrix)[152]);
  EXPECT_TRUE(NamedRegisters({0x0000000004007bff, 0x000fea0003800000}).all()) << "not known";
  // UTMALDG.2D [UR20], [UR28].
  EXPECT_TRUE(NamedRegisters({0x0000001c140075b4, 0x0001e20008008000}).none());
}

TEST(Predicates, WhoNamesAndWhoWritesThem) {
  const Instruction elect = Elect(kHopper, 5, {});
  EXPECT_TRUE(MayWritePredicate(elect, 5));
  EXPECT_FALSE(MayWritePredicate(elect, 4));
  EXPECT_FALSE(MayWritePredicate(MovImmediate(3, 1, {}).WithGuard(2), 2));
  const PredicateSet guard = NamedPredicates(MovImmediate(3, 1, {}).WithGuard(2));
  EXPECT_TRUE((guard.vector >> 2) & 1);
  EXPECT_EQ(guard.uniform, 0);
  EXPECT_TRUE((NamedPredicates(elect).vector >> 5) & 1);
  const PredicateSet all = NamedPredicates({0x0000007f04007804, 0x000fe20000000000});  // R2P
  EXPECT_EQ(all.vector, 0x7f);
  EXPECT_EQ(all.uniform, 0);
  // VOTEU.ANY UP5, !P1 has one of each; @UP5 UIADD3 is uniform alone.
  const PredicateSet vote = NamedPredicates(VoteUniformAny(kHopper, 5, 1, true, {}));
  EXPECT_TRUE((vote.vector >> 1) & 1);
  EXPECT_TRUE((vote.uniform >> 5) & 1);
  const PredicateSet advance = NamedPredicates(UaddImmediate(kHopper, 2, 2, 16, {}).WithGuard(5));
  EXPECT_TRUE((advance.uniform >> 5) & 1);
  EXPECT_EQ(advance.vector, 0);
}

// Of ptxas 13.0: IMAD.U32 R4, RZ, RZ, UR5; MOV R4, UR5; S2UR UR5, SR_GLOBALTIMERLO.
TEST(Uniforms, AreMovedAndWritten) {
  constexpr Instruction kImad{0x00000005ff047e24, 0x008fe2000f8e00ff};
  constexpr Instruction kMov{0x0000000500047c02, 0x002fe20008000f00};
  constexpr Instruction kS2ur{0x00000000000579c3, 0x000ee20000005200};
  EXPECT_EQ(MovedUniform(kImad, kHopper), 5);
  EXPECT_EQ(MovedUniform(kMov, kHopper), 5);
  EXPECT_EQ(MovedUniform(MovImmediate(4, 5, {}), kHopper), std::nullopt);
  EXPECT_EQ(MovedUniform({kImad.low & ~(uint64_t{0xf0} << 24), kImad.high}, kHopper), std::nullopt);
  EXPECT_TRUE(MayWriteUniform(kS2ur, 5, kHopper));
  EXPECT_FALSE(MayWriteUniform(kS2ur, 4, kHopper));
  EXPECT_FALSE(MayWriteUniform(kMov, 4, kHopper)) << "a general register";
}

TEST(Writers, LoadsFillAsManyRegistersAsTheyAreWide) {
  const Instruction constant{0x00008600ff007b82, 0x000e220000000800};  // LDC R0, c[0x0][0x218]
  EXPECT_TRUE(MayWriteRegister(constant, 0));
  EXPECT_FALSE(MayWriteRegister(constant, 1));
  const Instruction pair{0x00008400ff027b82, 0x000e240000000a00};  // LDC.64 R2, c[0x0][0x210]
  EXPECT_TRUE(MayWriteRegister(pair, 3));
  EXPECT_FALSE(MayWriteRegister(pair, 4));
  EXPECT_TRUE(MayWriteRegister(Ldg(Width::k128, 8, 4, 4, 0, {}), 11));
  EXPECT_FALSE(MayWriteRegister(Ldg(Width::k128, 8, 4, 4, 0, {}), 12));
}

TEST(Writers, WhatIsSureToWrite) {
  EXPECT_TRUE(WritesRegister(MovImmediate(3, 1, {}), 3));
  EXPECT_FALSE(WritesRegister(MovImmediate(3, 1, {}), 4));
  EXPECT_TRUE(WritesRegister(MovImmediate(3, 1, {}).WithGuard(0), 3)) << "where P0 holds";
  EXPECT_TRUE(WritesRegister(Cs2r32(3, SpecialRegister::kClockLow, {}), 3));
  EXPECT_TRUE(WritesRegister(Ldg(Width::k64, 8, 4, 4, 0, {}), 9));
  EXPECT_FALSE(WritesRegister(Ldg(Width::k64, 8, 4, 4, 0, {}), 10));
  EXPECT_FALSE(WritesRegister({0x0000000004007bff, 0x000fea0003800000}, 4)) << "not known";
}

TEST(Constants, AreWhatMovesOfThemWrite) {
  EXPECT_EQ(MovedConstant(MovImmediate(3, 0x12345678, {})), 0x12345678u);
  // IMAD.MOV.U32 R3, RZ, RZ, 0x378ed356, by ptxas 13.0.
  constexpr Instruction kImad{0x378ed356ff037424, 0x000fe200078e00ff};
  EXPECT_EQ(MovedConstant(kImad), 0x378ed356u);
  EXPECT_EQ(MovedConstant(kImad.WithNegatedGuard(0)), 0x378ed356u);
  // Some bytes of a register, a product, a carry; and a register.
  Instruction bytes = MovImmediate(3, 1, {});
  bytes.high &= ~uint64_t{0x100};
  EXPECT_EQ(MovedConstant(bytes), std::nullopt);
  EXPECT_EQ(MovedConstant({kImad.low & ~(uint64_t{0xf0} << 24), kImad.high}), std::nullopt);
  EXPECT_EQ(MovedConstant({kImad.low, kImad.high | 1u << (74 - 64)}), std::nullopt);
  EXPECT_EQ(MovedConstant(MovFromUniform(2, 8, {})), std::nullopt);
  EXPECT_EQ(MovedConstant(Nop({})), std::nullopt);
}

// The decoder's table says of each opcode whether it writes a general register.
TEST(Writers, NoneInTheTableIsMissed) {
  int writers = 0;
  for (const OpcodeRow& row : OpcodeTable()) {
    const Instruction writes_r9{(row.opcode | (row.any_form ? 0x200u : 0u)) | 0x7000u | 9u << 16,
                                0};
    const bool may = std::string_view(row.operands).find('d') != std::string_view::npos;
    EXPECT_EQ(MayWriteRegister(writes_r9, 9), may) << row.mnemonic;
    const bool second = row.operands[0] == 'c';
    EXPECT_EQ(MayWriteRegister(writes_r9, 8), second) << row.mnemonic;
    EXPECT_EQ(MayWriteRegister(writes_r9, 17), second) << row.mnemonic;
    writers += may ? 1 : 0;
  }
  EXPECT_GT(writers, 80);
  EXPECT_TRUE(MayWriteRegister({0x75f0, 0}, 200)) << "a word without a row";
  EXPECT_FALSE(MayWriteRegister(Cs2r32(2, SpecialRegister::kClockLow, {}), 3));
}

TEST(ReservedUniforms, GeneralRegistersWithThoseNumbersAreFine) {
  EXPECT_FALSE(MayUseReservedUniforms(MovImmediate(0, 1, {}), kHopper));
  EXPECT_FALSE(MayUseReservedUniforms(MovFromUniform(2, 8, {}), kHopper));
  EXPECT_FALSE(MayUseReservedUniforms(Stg(Width::k32, 2, 4, 0, 0, {}), kHopper));
  // `ELECT P0, URZ, PT` and `ISETP.LE.AND P2, PT, R6, UR4, PT`, by ptxas 13.0.
  EXPECT_FALSE(MayUseReservedUniforms({0x00000000003f782f, 0x000fe40003800000}, kHopper));
  EXPECT_FALSE(MayUseReservedUniforms({0x0000000406007c0c, 0x001fe2000bf43270}, kHopper));
  // `UISETP.LT.U32.AND UP0, UPT, UR8, 0x5, UPT`: bits 16..21 are zero but name nothing.
  EXPECT_FALSE(MayUseReservedUniforms({0x000000050800788c, 0x000fe2000bf01070}, kHopper));
}

TEST(Isetp, TellsSimpleComparisonsFromOthers) {
  struct Case {
    Instruction instruction;
    uint32_t predicate;
    bool simple;
  };
  const Case cases[] = {
      {{0x000000080900780c, 0x002fc80003f06270}, 0, true},   // ISETP.GE.AND P0, PT, R9, 0x8, PT
      {{0x000000080200720c, 0x004fe20003f45070}, 2, true},   // .NE.U32.AND P2, PT, R2, R8, PT
      {{0x0000000606007c0c, 0x008fe4000bf26070}, 1, true},   // .GE.U32.AND P1, PT, R6, UR6, PT
      {{0x000000090800720c, 0x000fe40004706670}, 0, false},  // .GE.OR P0, PT, R8, R9, !P0
      {{0x000000ff0300720c, 0x000fe40003f45320}, 2, false},  // .NE.AND.EX P2, PT, R3, RZ, PT, P2
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(IsIsetp(c.instruction));
    EXPECT_EQ(IsetpPredicate(c.instruction), c.predicate);
    EXPECT_EQ(IsSimpleIsetp(c.instruction, kHopper), c.simple);
  }
  // .GE.OR P0, PT, R8, R9, !P0: the header itself joins comparisons before sm_90.
  EXPECT_TRUE(IsSimpleIsetp({0x000000090800720c, 0x000fe40004706670}, kAmpere));
  EXPECT_FALSE(IsSimpleIsetp({0x000000ff0300720c, 0x000fe40003f45320}, kAmpere));
  EXPECT_FALSE(IsIsetp(TestImmediate(0, 2, 31, {})));
  EXPECT_FALSE(IsIsetp({0x000000050800788c, 0x000fe2000bf01070}));  // UISETP
}

TEST(UnguardedSources, StoreWithoutAReadBarrier) {
  // `STG.E desc[UR6][R2.64], R7`, the last store of a kernel by ptxas 13.0.
  const RegisterSet set = UnguardedSources({0x0000000702007986, 0x000fe2000c101906}, kHopper);
  EXPECT_TRUE(set[2] && set[3] && set[7]);
  EXPECT_FALSE(set[8]);
}

TEST(UnguardedSources, WideStore) {
  const RegisterSet set = UnguardedSources(Stg(Width::k128, 255, 4, 0, 20, {}), kHopper);
  EXPECT_TRUE(set[20] && set[21] && set[22] && set[23]);
  EXPECT_FALSE(set[24]);
  EXPECT_EQ(set.count(), 4u);
}

TEST(UnguardedSources, BarriersAndArithmeticAreNoConcern) {
  EXPECT_TRUE(
      UnguardedSources(Stg(Width::k128, 255, 4, 0, 20, {.read_barrier = 1}), kHopper).none());
  EXPECT_TRUE(UnguardedSources(Ldg(Width::k64, 8, 4, 4, 0, {.write_barrier = 2}), kHopper).none());
  EXPECT_TRUE(UnguardedSources(ImadImmediate(4, 0, 1, 2, {}), kHopper).none());
}

TEST(CanGuardSources, StoresThatHaveNoScoreboard) {
  EXPECT_TRUE(CanGuardSources({0x0000000702007986, 0x000fe2000c101906}));  // STG
  EXPECT_TRUE(CanGuardSources(Stg(Width::k128, 255, 4, 0, 20, {})));
  EXPECT_FALSE(CanGuardSources(Stg(Width::k128, 255, 4, 0, 20, {.read_barrier = 1})));
  EXPECT_FALSE(CanGuardSources(Ldg(Width::k64, 8, 4, 4, 0, {.write_barrier = 2})));
  EXPECT_FALSE(CanGuardSources(Ldg(Width::k64, 8, 4, 4, 0, {})));
}

}  // namespace
}  // namespace iket::sass
