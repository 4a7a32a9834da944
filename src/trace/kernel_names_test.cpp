#include "trace/kernel_names.h"

#include <gtest/gtest.h>

namespace iket::trace {
namespace {

TEST(ShortKernelName, IsTheFunctionsOwnName) {
  EXPECT_EQ(ShortKernelName("saxpy(float, float const*, float*)"), "saxpy");
  EXPECT_EQ(ShortKernelName("void ns::gemm<float, 128>(float*)"), "gemm");
  EXPECT_EQ(ShortKernelName("void a::b<c<d>, e>::run<f(int)>(g<h>)"), "run");
  EXPECT_EQ(ShortKernelName("(anonymous namespace)::reduce(int*)"), "reduce");
  EXPECT_EQ(ShortKernelName("void (anonymous namespace)::scan<int>(int*)"), "scan");
  EXPECT_EQ(ShortKernelName("plain_c_name"), "plain_c_name");
  EXPECT_EQ(ShortKernelName(""), "");
}

TEST(ShortKernelName, IsShort) {
  EXPECT_EQ(ShortKernelName(std::string(2000, 'x')), std::string(45, 'x') + "...");
}

TEST(ShortKernelName, IsNeverEmptyForAName) {
  for (const char* odd : {"(", "<", "::", " ", "a::", "void ", "<<>>(", "(anonymous namespace)"}) {
    EXPECT_FALSE(ShortKernelName(odd).empty()) << odd;
  }
}

}  // namespace
}  // namespace iket::trace
