#include "inject/say.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace iket::inject {
namespace {

constexpr size_t kMostTexts = 64;

}  // namespace

void Say(std::string_view text) noexcept {
  try {
    static std::mutex mutex;
    static auto* said = new std::set<std::string>;  // outlives every atexit handler
    static const char* quiet = std::getenv("IKET_QUIET");
    if (quiet != nullptr && *quiet == '1') return;
    std::string line = "iket: " + std::string(text) + "\n";
    {
      const std::lock_guard lock(mutex);
      if (said->size() >= kMostTexts || !said->insert(line).second) return;
    }
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  } catch (...) {
    return;  // out of memory: saying nothing is all that is left
  }
}

}  // namespace iket::inject
