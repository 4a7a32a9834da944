// run_iket.h: `run-iket`, the command line of NVIDIA's tool of that name, over this collector.
//
// For scripts and programs that call run-iket 4.8.1: the same options, names of files, lines and
// exit codes. What runs, reads and writes is that of `iket profile` and `iket export`; where this
// collector makes an option needless a line says so. docs/run-iket.md lists what differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace iket::cli::run_iket {

// The options in front of `profile` and `postprocess`.
struct CommonOptions {
  std::string context_buffer_size;
  std::string log_level = "error";
  std::string working_dir;  // empty: the current one
  std::string output_dir;   // empty: iket_output in the working folder
  bool clobber = false;
};

struct ProfileOptions {
  std::string use_config, use_tracker_dir;
  std::optional<int64_t> max_ts_cnt_per_warp;
  std::string postprocess = "perfetto";
  bool keep = false;
  bool enable_stats = false;
  bool warp_trace = false;
  std::optional<bool> defer_trace_readback;
  std::string enabled_cluster, enabled_cluster_config;
};

struct PostprocessOptions {
  std::string run_dir;
  std::string format = "all";
  std::string output_dir;  // empty: run_dir
};

// Exit codes. Of a program that ended by itself with another code than 0 it is the program's.
inline constexpr int kFailed = 1;

// A line of the tool on standard output, `[run-iket] ...`.
void Say(std::string_view line);

// Each returns the exit code. An error of the kind kUsage is wrong use of the command line (2), all
// others end with kFailed.
Result<int> Profile(const CommonOptions& common, const ProfileOptions& options,
                    const std::vector<std::string>& program);
Result<int> Postprocess(const PostprocessOptions& options);

// The whole program.
int Main(int argc, char** argv);

}  // namespace iket::cli::run_iket
