// info.h: the two kinds of file that `iket info` describes, one source each.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace iket::cli {

struct InfoOptions {
  std::string file;
  std::string compare;  // another build of the same kernels
  bool sites = false;   // every site with its offset
  bool all = false;     // images and kernels without marks, too
  bool json = false;
};

// A cubin, fatbin, program, library or archive: kernels, marks, sites, what is refused and why.
Result<int> InfoOnCode(const InfoOptions& options, UntrustedBytes file);

// Registers, stack, instructions of the kernels of both files (options.compare is not empty).
Result<int> CompareCode(const InfoOptions& options);

// A capture: who ran, on what, which kernels and marks, what was noted.
Result<int> InfoOnCapture(const InfoOptions& options);

}  // namespace iket::cli
