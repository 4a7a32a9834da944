#include "supervisor/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

namespace iket::supervisor {
namespace {

TEST(Workers, EachDoesItsPartOfEveryJob) {
  Workers workers(4);
  ASSERT_EQ(workers.count(), 4u);
  std::vector<size_t> calls(4);  // each its own: what they wrote is visible behind Run()
  for (size_t round = 0; round < 1000; ++round) {
    workers.Run(1 + round % 6, [&](size_t number) { ++calls[number]; });
  }
  // Rounds in six want 1, 2, 3, 4, 5 and 6 of them.
  EXPECT_EQ(calls[0], 1000u);
  EXPECT_EQ(calls[1], 833u);
  EXPECT_EQ(calls[2], 666u);
  EXPECT_EQ(calls[3], 499u);
}

TEST(Workers, TheCallerIsTheFirst) {
  Workers workers(3);
  std::vector<std::thread::id> ids(3);
  workers.Run(3, [&](size_t number) { ids[number] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 3u);
}

TEST(Workers, OneNeedsNoThread) {
  Workers workers(1);
  EXPECT_EQ(workers.count(), 1u);
  int calls = 0;
  workers.Run(8, [&](size_t number) { calls += number == 0 ? 1 : 100; });
  EXPECT_EQ(calls, 1);
  EXPECT_GE(Workers::Count(), 1u);
  EXPECT_LE(Workers::Count(), 16u);
}

}  // namespace
}  // namespace iket::supervisor
