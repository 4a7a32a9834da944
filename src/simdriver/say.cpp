#include "simdriver/say.h"

#include <unistd.h>

#include <mutex>
#include <set>
#include <string>

namespace iket::simdriver {
namespace {

constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED; the generated file knows no cuda.h

bool IsNew(const char* function) {
  static auto* mutex = new std::mutex;
  static auto* named = new std::set<std::string_view>;
  const std::lock_guard lock(*mutex);
  return named->insert(function).second;
}

}  // namespace

void Say(std::string_view text) noexcept {
  try {
    std::string line = "iket-sim: ";
    line.append(text).push_back('\n');
    // A line that cannot be written has nowhere else to go.
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a line of text
  }
}

int NotSupported(const char* function) noexcept {
  try {
    if (IsNew(function)) {
      Say(std::string(function) +
          ": not part of the software device; it returns CUDA_ERROR_NOT_SUPPORTED");
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the answer is the same
  }
  return kNotSupported;
}

}  // namespace iket::simdriver
