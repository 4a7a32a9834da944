#include "capture/demangle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace iket::capture {
namespace {

TEST(Demangle, Names) {
  EXPECT_EQ(DemangledName("_Z4gemmPfS_i"), "gemm(float*, float*, int)");
  EXPECT_EQ(DemangledName("_ZN2ns6kernelIiLi3EEEvT_"), "void ns::kernel<int, 3>(int)");
  EXPECT_EQ(DemangledName("saxpy"), "saxpy");
  EXPECT_EQ(DemangledName(""), "");
  EXPECT_EQ(DemangledName("_Z"), "_Z");
  EXPECT_EQ(DemangledName("_Znot mangled"), "_Znot mangled");
  EXPECT_EQ(DemangledName("_Z99999999999999999999999999x"), "_Z99999999999999999999999999x");
  EXPECT_EQ(DemangledName(std::string_view("_Z1fv\0_Z1gv", 11)), "f()");
}

// A type that is two of the one before it, `levels` times: 2^levels letters from 10 * levels.
std::string Doubling(int levels) {
  const auto substitution = [](int number) {
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string text;
    for (int left = number; left > 0 || text.empty(); left /= 36) {
      text.insert(text.begin(), kDigits[static_cast<size_t>(left % 36)]);
    }
    return "S" + text + "_";
  };
  std::string name = "_Z1f1AIiiE";  // S_ is A, S0_ is A<int, int>
  for (int i = 0; i < levels; ++i) name += "S_I" + substitution(i) + substitution(i) + "E";
  return name;
}

TEST(Demangle, NamesThatWouldGrowWithoutEndAreCutShort) {
  EXPECT_THAT(DemangledName(Doubling(2)),
              testing::StartsWith("f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>"));
  EXPECT_EQ(DemangledName(Doubling(60)), "f(...)");
}

TEST(Demangle, LongNamesKeepTheirQualifiedName) {
  std::string arguments;
  for (int i = 0; i < 1000; ++i) arguments += "N7cutlass4gemmE";
  EXPECT_EQ(DemangledName("_ZN7cutlass13device_kernelI" + arguments + "EEvT_"),
            "cutlass::device_kernel<...>(...)");
  EXPECT_EQ(DemangledName("_Z7kernel2I" + arguments + "EvT_"), "kernel2<...>(...)");
  EXPECT_EQ(DemangledName("_ZN12_GLOBAL__N_11kI" + arguments + "EEvT_"),
            "(anonymous namespace)::k<...>(...)");
  EXPECT_EQ(DemangledName("_Z1f" + std::string(size_t{1} << 20, 'P') + "i"), "f(...)");
}

}  // namespace
}  // namespace iket::capture
