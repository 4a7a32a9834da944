#include "inject/launches.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace iket::inject {
namespace {

// Addresses that are nobody's.
const void* Handle(size_t i) {
  static const std::vector<std::max_align_t> kPlaces(40'000);
  return &kPlaces[i];
}

bool IsTraced(const void* handle, uint32_t number) {
  uint32_t found = 0;
  return LookUpKernel(handle, &found) && found == number;
}
bool IsTraced(const void* handle) {
  uint32_t found = 0;
  return LookUpKernel(handle, &found);
}

TEST(KernelHandles, AreWhatWasSaidLast) {
  EXPECT_FALSE(IsTraced(Handle(0)));
  RememberKernel(Handle(0), 7);
  EXPECT_TRUE(IsTraced(Handle(0), 7));
  RememberPlainKernel(Handle(0));
  EXPECT_FALSE(IsTraced(Handle(0)));
  RememberKernel(Handle(0), 8);
  EXPECT_TRUE(IsTraced(Handle(0), 8));
  ForgetKernel(8);
  EXPECT_FALSE(IsTraced(Handle(0)));
  EXPECT_FALSE(IsTraced(nullptr));
}

TEST(KernelHandles, OneKernelHasSeveral) {
  RememberKernel(Handle(1), 9);
  RememberAs(Handle(2), Handle(1));
  EXPECT_TRUE(IsTraced(Handle(2), 9));
  RememberPlainKernel(Handle(3));
  RememberAs(Handle(2), Handle(3));
  EXPECT_FALSE(IsTraced(Handle(2)));
  // Of one that nobody knows nothing follows.
  RememberKernel(Handle(4), 10);
  RememberAs(Handle(4), Handle(5));
  EXPECT_TRUE(IsTraced(Handle(4), 10));
}

TEST(KernelHandles, PlainOnesLeaveRoomForTheOthers) {
  for (size_t i = 100; i < 20'000; ++i) RememberPlainKernel(Handle(i));
  for (size_t i = 20'000; i < 24'000; ++i) RememberKernel(Handle(i), static_cast<uint32_t>(i));
  for (size_t i = 20'000; i < 24'000; ++i) {
    ASSERT_TRUE(IsTraced(Handle(i), static_cast<uint32_t>(i)));
  }
  ForgetPlainKernels();
  EXPECT_TRUE(IsTraced(Handle(20'000), 20'000));
}

}  // namespace
}  // namespace iket::inject
