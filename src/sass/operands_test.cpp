#include "sass/operands.h"

#include <gtest/gtest.h>

#include "sass/encode.h"

namespace iket::sass {
namespace {

TEST(ReservedUniforms, WritersOfUr0ToUr3) {
  EXPECT_TRUE(MayUseReservedUniforms(R2ur(3, 4, {})));
  EXPECT_TRUE(MayUseReservedUniforms(UaddImmediate(0, 9, 1, {})));
  EXPECT_TRUE(MayUseReservedUniforms(Uldc64(2, 0, 0x210, {})));
  EXPECT_FALSE(MayUseReservedUniforms(R2ur(4, 0, {})));
  EXPECT_FALSE(MayUseReservedUniforms(UaddImmediate(4, 9, 1, {})));
}

TEST(ReservedUniforms, GeneralRegistersWithThoseNumbersAreFine) {
  EXPECT_FALSE(MayUseReservedUniforms(MovImmediate(0, 1, {})));
  EXPECT_FALSE(MayUseReservedUniforms(MovFromUniform(2, 8, {})));
  EXPECT_FALSE(MayUseReservedUniforms(Stg(Width::k32, 2, 4, 0, 0, {})));
  // `ELECT P0, URZ, PT` and `ISETP.LE.AND P2, PT, R6, UR4, PT`, by ptxas 13.0.
  EXPECT_FALSE(MayUseReservedUniforms({0x00000000003f782f, 0x000fe40003800000}));
  EXPECT_FALSE(MayUseReservedUniforms({0x0000000406007c0c, 0x001fe2000bf43270}));
  // `UISETP.LT.U32.AND UP0, UPT, UR8, 0x5, UPT`: bits 16..21 are zero but name nothing.
  EXPECT_FALSE(MayUseReservedUniforms({0x000000050800788c, 0x000fe2000bf01070}));
}

TEST(UnguardedSources, StoreWithoutAReadBarrier) {
  // `STG.E desc[UR6][R2.64], R7`, the last store of a kernel by ptxas 13.0.
  const RegisterSet set = UnguardedSources({0x0000000702007986, 0x000fe2000c101906});
  EXPECT_TRUE(set[2] && set[3] && set[7]);
  EXPECT_FALSE(set[8]);
}

TEST(UnguardedSources, WideStore) {
  const RegisterSet set = UnguardedSources(Stg(Width::k128, 255, 4, 0, 20, {}));
  EXPECT_TRUE(set[20] && set[21] && set[22] && set[23]);
  EXPECT_FALSE(set[24]);
  EXPECT_EQ(set.count(), 4u);
}

TEST(UnguardedSources, BarriersAndArithmeticAreNoConcern) {
  EXPECT_TRUE(UnguardedSources(Stg(Width::k128, 255, 4, 0, 20, {.read_barrier = 1})).none());
  EXPECT_TRUE(UnguardedSources(Ldg(Width::k64, 8, 4, 4, 0, {.write_barrier = 2})).none());
  EXPECT_TRUE(UnguardedSources(ImadImmediate(4, 0, 1, 2, {})).none());
}

}  // namespace
}  // namespace iket::sass
