#include "inject/own_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace iket::inject {
namespace {

// What it says in a child, as the child's exit code: 1 own, 0 not.
int InAChild(pid_t (*make_child)()) {
  const pid_t child = make_child();
  if (child == 0) _exit(IsOwnProcess() ? 1 : 0);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OwnProcess, IsTheOneThatAskedFirst) {
  EXPECT_TRUE(IsOwnProcess());
  EXPECT_EQ(InAChild([] { return fork(); }), 0);
  EXPECT_TRUE(IsOwnProcess());
}

TEST(OwnProcess, AGrandchildIsNone) {
  EXPECT_TRUE(IsOwnProcess());
  EXPECT_EQ(InAChild([] {
              const pid_t child = fork();
              if (child != 0) return child;
              const pid_t grandchild = fork();
              if (grandchild == 0) return pid_t{0};
              int status = -1;
              waitpid(grandchild, &status, 0);
              _exit(WEXITSTATUS(status));
            }),
            0);
}

}  // namespace
}  // namespace iket::inject
