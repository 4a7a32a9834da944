#include "inject/jit_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace iket::inject {
namespace {

using Attempt = JitOptions::Attempt;
using ::testing::ElementsAre;

void* Number(uintptr_t value) { return reinterpret_cast<void*>(value); }  // NOLINT: as cuda.h asks

// A call's options with a log of 16 bytes.
struct Call {
  char log[16] = "before";
  CUjit_option options[5] = {CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER, CU_JIT_FALLBACK_STRATEGY,
                             CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  void* values[5] = {Number(64), log, Number(0), Number(sizeof log), nullptr};
};

// What a driver would do with them.
void Answer(JitOptions::List& list, const char* text) {
  for (size_t i = 0; i < list.options.size(); ++i) {
    if (list.options[i] == CU_JIT_INFO_LOG_BUFFER)
      std::strcpy(static_cast<char*>(list.values[i]), text);
    if (list.options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
      list.values[i] = Number(std::strlen(text));
    if (list.options[i] == CU_JIT_WALL_TIME) list.values[i] = Number(7);
  }
}

TEST(JitOptions, AnAttemptToLoadHasAllOfThem) {
  Call call;
  JitOptions jit(Attempt::kLoad, 5, call.options, call.values);
  EXPECT_EQ(jit.link().count(), 0u);
  EXPECT_THAT(jit.load().options, ::testing::ElementsAreArray(call.options));
  EXPECT_EQ(jit.load().values[0], Number(64));
  EXPECT_EQ(jit.load().values[3], Number(16));
}

TEST(JitOptions, TheLinkerGetsNoFallbackAndTheLoadNoLogs) {
  Call call;
  JitOptions jit(Attempt::kCompileAndLoad, 5, call.options, call.values);
  EXPECT_THAT(jit.link().options, ElementsAre(CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER,
                                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME));
  EXPECT_THAT(jit.load().options, ElementsAre(CU_JIT_MAX_REGISTERS, CU_JIT_FALLBACK_STRATEGY));
}

TEST(JitOptions, AnswersReachTheCallerOnlyWhenGivenBack) {
  for (const Attempt attempt : {Attempt::kLoad, Attempt::kCompileAndLoad}) {
    Call call;
    JitOptions jit(attempt, 5, call.options, call.values);
    Answer(jit.link(), "ptxas");
    Answer(jit.load(), "ptxas");
    EXPECT_STREQ(call.log, "before");
    EXPECT_EQ(call.values[3], Number(16));
    EXPECT_EQ(call.values[4], nullptr);
    jit.GiveBack();
    EXPECT_STREQ(call.log, "ptxas");
    EXPECT_EQ(call.values[1], call.log);
    EXPECT_EQ(call.values[3], Number(5));
    EXPECT_EQ(call.values[4], Number(7));
    EXPECT_EQ(call.values[0], Number(64));
  }
}

TEST(JitOptions, ALogMayFillItsBuffer) {
  Call call;
  JitOptions jit(Attempt::kLoad, 5, call.options, call.values);
  std::memset(jit.load().values[1], 'x', sizeof call.log);
  jit.GiveBack();
  EXPECT_EQ(std::string(call.log, sizeof call.log), std::string(sizeof call.log, 'x'));
}

TEST(JitOptions, LogsWithoutRoom) {
  Call call;
  call.values[3] = nullptr;
  JitOptions none(Attempt::kLoad, 5, call.options, call.values);
  EXPECT_EQ(none.load().values[1], call.log) << "nothing will be written to it";
  JitOptions no_size(Attempt::kLoad, 2, call.options, call.values);
  EXPECT_EQ(no_size.load().count(), 2u);
  JitOptions empty(Attempt::kCompileAndLoad, 0, nullptr, nullptr);
  EXPECT_EQ(empty.link().count() + empty.load().count(), 0u);
  empty.GiveBack();
}

}  // namespace
}  // namespace iket::inject
