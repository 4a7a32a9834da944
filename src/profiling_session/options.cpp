#include "profiling_session/options.h"

#include <algorithm>

namespace iket::profiling_session {
namespace {

constexpr uint32_t kSize = sizeof(IketProfilingSessionOptions);
constexpr uint32_t kFlags = IKET_PROFILING_SESSION_ENABLE_CLUSTER |
                            IKET_PROFILING_SESSION_DEFER_TRACE_READBACK |
                            IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY;
// What NVIDIA's library fills in.
constexpr uint64_t kUsualTimestamps = 256;
constexpr uint64_t kUsualBytes = uint64_t{512} << 20;

// Expressions that are found in every name, and in none.
constexpr char kEvery[] = ".";
constexpr char kNone[] = "x^";

}  // namespace

IketProfilingSessionResult Init(IketProfilingSessionOptions* options) noexcept {
  if (options == nullptr || options->struct_size < kSize) {
    return IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  }
  *options = {.struct_size = options->struct_size,
              .flags = 0,
              .max_ts_per_warp = kUsualTimestamps,
              .device_buffer_size = kUsualBytes,
              .profiled_cuda_contexts = nullptr,
              .num_profiled_cuda_contexts = 0,
              .enabled_cluster = {},
              .log_level = IKET_PROFILING_SESSION_LOG_WARN};
  return IKET_PROFILING_SESSION_SUCCESS;
}

IketProfilingSessionResult Read(const IketProfilingSessionOptions* untrusted, Options& options) {
  constexpr auto kInvalid = IKET_PROFILING_SESSION_INVALID_ARGUMENT;
  if (untrusted == nullptr || untrusted->struct_size < kSize) return kInvalid;
  const IketProfilingSessionOptions& from = *untrusted;
  const bool one_cluster = (from.flags & IKET_PROFILING_SESSION_ENABLE_CLUSTER) != 0;
  const bool lifetimes_only = (from.flags & IKET_PROFILING_SESSION_WARP_LIFETIME_ONLY) != 0;
  if ((from.flags & ~kFlags) != 0 || (one_cluster && lifetimes_only)) return kInvalid;
  if (from.max_ts_per_warp == 0 || from.max_ts_per_warp > UINT32_MAX) return kInvalid;
  if (from.device_buffer_size == 0 || from.log_level > IKET_PROFILING_SESSION_LOG_INFO) {
    return kInvalid;
  }
  const uint64_t count = from.num_profiled_cuda_contexts;
  if (count != 0 && from.profiled_cuda_contexts == nullptr) return kInvalid;
  Options read;
  for (uint64_t i = 0; i < count; ++i) {
    const void* const context = from.profiled_cuda_contexts[i];
    if (context == nullptr) return kInvalid;
    read.contexts.push_back(static_cast<CUcontext>(const_cast<void*>(context)));
  }
  if (one_cluster) {
    const IketProfilingSessionClusterIndex& place = from.enabled_cluster;
    read.cluster = {place.x, place.y, place.z};
  }
  read.lifetimes_only = lifetimes_only;
  read.log_level = from.log_level;
  // Lifetimes have a budget of their own in NVIDIA's, too.
  read.sizes_buffers = from.device_buffer_size != kUsualBytes ||
                       (!lifetimes_only && from.max_ts_per_warp != kUsualTimestamps);
  options = std::move(read);
  return IKET_PROFILING_SESSION_SUCCESS;
}

session::Selection SelectionFor(const Options& options, const session::Selection& base) {
  session::Selection selection = base;
  selection.by_program = true;
  if (options.cluster) selection.ctas.cluster = options.cluster;
  if (options.lifetimes_only) {
    selection.warps = std::string(kEvery);
    selection.events = std::string(kNone);
  }
  return selection;
}

}  // namespace iket::profiling_session
