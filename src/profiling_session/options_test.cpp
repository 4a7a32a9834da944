#include "profiling_session/options.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>

namespace iket::profiling_session {
namespace {

using testing::ElementsAre;

constexpr auto kGood = IKET_PROFILING_SESSION_SUCCESS;
constexpr auto kInvalid = IKET_PROFILING_SESSION_INVALID_ARGUMENT;

IketProfilingSessionOptions Usual() {
  IketProfilingSessionOptions options{};
  options.struct_size = sizeof options;
  EXPECT_EQ(Init(&options), kGood);
  return options;
}

Options ReadOrFail(const IketProfilingSessionOptions& from) {
  Options options;
  EXPECT_EQ(Read(&from, options), kGood);
  return options;
}

// True if a change of the usual options makes them invalid; then nothing is read, either.
template <typename Change>
bool IsInvalid(const Change& change) {
  IketProfilingSessionOptions options = Usual();
  change(options);
  Options read{.log_level = 17};
  const auto code = Read(&options, read);
  EXPECT_EQ(read.log_level == 17, code == kInvalid);
  return code == kInvalid;
}

TEST(Options, TheUsualOnesAreAsNvidiasLibraryHasThem) {
  const IketProfilingSessionOptions options = Usual();
  EXPECT_EQ(options.flags, 0);
  EXPECT_EQ(options.max_ts_per_warp, 256);
  EXPECT_EQ(options.device_buffer_size, 536870912);
  EXPECT_EQ(options.profiled_cuda_contexts, nullptr);
  EXPECT_EQ(options.num_profiled_cuda_contexts, 0);
  EXPECT_EQ(options.log_level, IKET_PROFILING_SESSION_LOG_WARN);
  EXPECT_EQ(ReadOrFail(options), Options{});
}

TEST(Options, OfALaterVersionKeepTheirSizeAndTheirEnd) {
  struct {
    IketProfilingSessionOptions known;
    std::array<unsigned char, 64> more;
  } later;
  std::memset(&later, 0x55, sizeof later);
  later.known.struct_size = sizeof later;
  EXPECT_EQ(Init(&later.known), kGood);
  EXPECT_EQ(later.known.struct_size, sizeof later);
  EXPECT_THAT(later.more, testing::Each(0x55));
  EXPECT_EQ(ReadOrFail(later.known), Options{});
}

TEST(Options, NeedTheirSize) {
  EXPECT_EQ(Init(nullptr), kInvalid);
  for (const uint32_t size : {0u, 4u, 55u}) {
    IketProfilingSessionOptions options;
    std::memset(&options, 0x55, sizeof options);
    options.struct_size = size;
    EXPECT_EQ(Init(&options), kInvalid);
    EXPECT_EQ(options.flags, 0x55555555) << "written beyond what the caller has";
    EXPECT_TRUE(IsInvalid([size](auto& wrong) { wrong.struct_size = size; }));
  }
  Options read;
  EXPECT_EQ(Read(nullptr, read), kInvalid);
}

TEST(Options, OutOfRangeAreInvalid) {
  EXPECT_TRUE(IsInvalid([](auto& options) { options.flags = 8; }));
  EXPECT_TRUE(IsInvalid([](auto& options) { options.flags = 0x80000000; }));
  EXPECT_TRUE(IsInvalid([](auto& options) { options.flags = 5; })) << "cluster, and lifetimes only";
  EXPECT_TRUE(IsInvalid([](auto& options) { options.max_ts_per_warp = 0; }));
  EXPECT_TRUE(IsInvalid([](auto& options) { options.max_ts_per_warp = uint64_t{1} << 32; }));
  EXPECT_FALSE(IsInvalid([](auto& options) { options.max_ts_per_warp = UINT32_MAX; }));
  EXPECT_TRUE(IsInvalid([](auto& options) { options.device_buffer_size = 0; }));
  EXPECT_FALSE(IsInvalid([](auto& options) { options.device_buffer_size = UINT64_MAX; }));
  EXPECT_TRUE(IsInvalid([](auto& options) { options.log_level = 3; }));
}

TEST(Options, NameContexts) {
  int one = 0, other = 0;
  std::array<const void*, 3> contexts = {&one, &other, nullptr};
  IketProfilingSessionOptions options = Usual();
  options.profiled_cuda_contexts = contexts.data();
  EXPECT_THAT(ReadOrFail(options).contexts, ElementsAre()) << "none: all";
  options.num_profiled_cuda_contexts = 2;
  EXPECT_THAT(ReadOrFail(options).contexts,
              ElementsAre(reinterpret_cast<CUcontext>(&one), reinterpret_cast<CUcontext>(&other)));
  EXPECT_TRUE(IsInvalid([&](auto& wrong) {
    wrong = options;
    wrong.num_profiled_cuda_contexts = 3;
  })) << "one is null";
  EXPECT_TRUE(IsInvalid([](auto& wrong) { wrong.num_profiled_cuda_contexts = 1; }));
}

TEST(Options, NarrowWhatIsSelected) {
  session::Selection base{.kernels = "gemm"};
  session::Selection wanted = base;
  wanted.by_program = true;
  IketProfilingSessionOptions options = Usual();
  EXPECT_EQ(SelectionFor(ReadOrFail(options), base), wanted);

  options.flags = IKET_PROFILING_SESSION_DEFER_TRACE_READBACK;
  EXPECT_EQ(SelectionFor(ReadOrFail(options), base), wanted);

  // The place counts with its flag alone.
  options.enabled_cluster = {.x = 70000, .y = 2, .z = 3};
  EXPECT_EQ(SelectionFor(ReadOrFail(options), base), wanted);
  options.flags = IKET_PROFILING_SESSION_ENABLE_CLUSTER;
  wanted.ctas.cluster = {70000, 2, 3};
  EXPECT_EQ(SelectionFor(ReadOrFail(options), base), wanted);
}

TEST(Options, LifetimesOnlyAreOfEveryKernelAndNoEvent) {
  IketProfilingSessionOptions options = Usual();
  options.flags = IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY;
  const session::Selection selection = SelectionFor(ReadOrFail(options), {});
  const auto chooser = session::KernelChooser::Make(selection);
  ASSERT_TRUE(chooser);
  EXPECT_TRUE(chooser->WantsWarps("k", "k"));
  EXPECT_FALSE(chooser->WantsEvent("event"));
  EXPECT_FALSE(chooser->WantsEvent("x"));
  EXPECT_FALSE(chooser->WantsEvent(""));
}

TEST(Options, SizesThatWeHaveNoUseForAreNoticed) {
  IketProfilingSessionOptions options = Usual();
  EXPECT_FALSE(ReadOrFail(options).sizes_buffers);
  options.max_ts_per_warp = 4096;
  EXPECT_TRUE(ReadOrFail(options).sizes_buffers);
  options.flags = IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY;
  EXPECT_FALSE(ReadOrFail(options).sizes_buffers);
  options.device_buffer_size = 1 << 20;
  EXPECT_TRUE(ReadOrFail(options).sizes_buffers);
}

}  // namespace
}  // namespace iket::profiling_session
