#include "capture/demangle.h"

#include <cstddef>
#include <optional>

#include "capture/mangled_name.h"

namespace iket::capture {
namespace {

constexpr size_t kLongest = size_t{64} << 10;

// The qualified name alone of a mangled name `_ZN <length> <letters> ...`, or `_Z <length> ...`:
// what can be said of names that are too long for the demangler, as those of CUTLASS kernels often
// are.
std::optional<std::string> QualifiedName(std::string_view mangled) {
  mangled.remove_prefix(2);
  const bool nested = mangled.starts_with('N');
  if (nested) mangled.remove_prefix(1);
  std::string name;
  while (!mangled.empty() && mangled[0] >= '1' && mangled[0] <= '9') {
    size_t length = 0;
    while (!mangled.empty() && mangled[0] >= '0' && mangled[0] <= '9' && length < kLongest) {
      length = length * 10 + static_cast<size_t>(mangled[0] - '0');
      mangled.remove_prefix(1);
    }
    if (length > mangled.size()) return std::nullopt;
    const std::string_view part = mangled.substr(0, length);
    if (!name.empty()) name += "::";
    name += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    mangled.remove_prefix(length);
    if (!nested) break;
  }
  if (name.empty()) return std::nullopt;
  if (mangled.starts_with('I')) name += "<...>";
  return name + "(...)";
}

}  // namespace

std::string DemangledName(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::string(mangled);
  if (mangled.size() <= kLongest) {
    if (std::optional<std::string> text = DemangleItanium(mangled, kLongest))
      return *std::move(text);
  }
  return QualifiedName(mangled).value_or(std::string(mangled));
}

}  // namespace iket::capture
