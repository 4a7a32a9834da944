// selection_options.h: the options of `iket profile` that say what is to be recorded, and the file
// that can say it too.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "session/selection.h"

namespace iket::cli {

// As they stand on the command line; empty: not given.
struct SelectionOptions {
  std::string kernels, warps, events, launches, cluster, sample, sms, nvtx, config;
  std::vector<std::string> triggers;
  bool by_program = false;
};

// Declares --kernel, --warp-trace, --range-filter, --pmevent, --launch, --cluster, --cta-sample,
// --sm, --nvtx, --paused and --config.
void AddSelection(CLI::App& command, SelectionOptions& options);

// What they say together; the command line has precedence over the file. Errors: kUsage names the
// option, kBadInput or kSystem the file.
Result<session::Selection> ReadSelection(const SelectionOptions& options);

// Of the text of a file: an object of our options, or one of run-iket's --enabled-cluster-config,
// kernel names and the cluster of each. `name` is for messages. Errors: kBadInput.
Result<session::Selection> ParseConfig(const std::string& untrusted, const std::string& name);

// The rules of a file of run-iket's form, whatever its kernels are called. Errors: kBadInput,
// kSystem.
Result<std::vector<session::ClusterRule>> ReadClusterRules(const std::string& path);

// What a process can be told in its environment: not too long, regular expressions that are some.
Result<void> CheckSelection(const session::Selection& selection);

}  // namespace iket::cli
