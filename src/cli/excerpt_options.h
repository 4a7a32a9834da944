// excerpt_options.h: the options of `iket export` that say which part of a capture is written, and
// --split, one file a part. Spelled and meant as those of `iket profile` that say what is recorded.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "session/selection.h"
#include "trace/excerpt.h"
#include "trace/model.h"

namespace iket::cli {

// As they stand on the command line; empty: not given.
struct ExcerptOptions {
  std::string kernels{}, events{}, launches{}, cluster{}, cta{}, sms{}, window{};
  std::string split{};
};

// Declares --kernel, --name, --launch, --cluster, --cta, --sm, --window and --split.
void AddExcerpt(CLI::App& command, ExcerptOptions& options);

// "10us..1.5ms", "..300", "2ms..": ns of the trace, the end not included. Error: kUsage.
Result<std::pair<double, double>> ParseWindow(std::string_view text);
// "3,5:8,12:": ranges of numbers, the ends not included. Error: kUsage.
Result<std::vector<std::pair<uint64_t, uint64_t>>> ParseLaunchList(std::string_view text);

// What the options ask of any capture.
class ExcerptChoice {
 public:
  // Errors (kUsage) name the option.
  static Result<ExcerptChoice> Make(const ExcerptOptions& options);

  bool asks() const { return !words_.empty(); }
  // The part of `model` that is asked for. Error (kNothing): there is none; says what there is.
  Result<trace::Model> Of(const trace::Model& model, const std::string& path) const;
  // The same as rows. Error (kNothing): no warp, or no name, is asked for.
  Result<trace::ExcerptOf> RowsOf(const trace::Model& model, const std::string& path) const;

 private:
  explicit ExcerptChoice(session::KernelChooser chooser) : chooser_(std::move(chooser)) {}
  trace::ExcerptOf RowsOf(const trace::Model& model) const;
  std::string WhatThereIs(const trace::Model& model) const;
  tl::unexpected<Error> NothingOf(const trace::Model& model, const std::string& path) const;

  ExcerptOptions options_;
  std::string words_;  // the options, as they were given
  session::KernelChooser chooser_;
  std::vector<std::pair<uint64_t, uint64_t>> launches_;
  trace::ExcerptOf of_;  // but for the rows of launches and declarations
};

// One file of --split.
struct Piece {
  std::string name;  // "launch3", "kernel-gemm", "sm17": what stands before the format's extension
  std::string words;
  trace::ExcerptOf of;
};

// The pieces of a model by "launch", "kernel" or "sm", in their order; only those with warps.
std::vector<Piece> PiecesOf(const trace::Model& model, std::string_view split);

}  // namespace iket::cli
