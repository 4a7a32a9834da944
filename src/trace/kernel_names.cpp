#include "trace/kernel_names.h"

namespace iket::trace {
namespace {

constexpr size_t kMaxBytes = 48;

}  // namespace

std::string ShortKernelName(std::string_view demangled) {
  // The name ends where its template arguments or its parameters begin, and starts after the last
  // "::" or blank outside of brackets before that. "(anonymous namespace)::" is a qualifier.
  size_t start = 0, end = demangled.size();
  int depth = 0;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '(' && depth == 0) {
      constexpr std::string_view kAnonymous = "(anonymous namespace)";
      if (demangled.substr(i).starts_with(kAnonymous)) {
        i += kAnonymous.size() - 1;
        continue;
      }
      if (i > start) {
        end = std::min(end, i);
        break;
      }
    }
    if (c == '<') {
      if (depth == 0 && i > start) end = i;
      ++depth;
    } else if (c == '>') {
      depth -= depth > 0 ? 1 : 0;
    } else if (depth == 0 && (c == ' ' || (c == ':' && i > 0 && demangled[i - 1] == ':'))) {
      start = i + 1;
      end = demangled.size();
    }
  }
  std::string name(demangled.substr(start, end > start ? end - start : std::string_view::npos));
  if (name.empty()) name = demangled;
  if (name.size() > kMaxBytes) name = name.substr(0, kMaxBytes - 3) + "...";
  return name;
}

}  // namespace iket::trace
