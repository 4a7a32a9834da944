#include "capture/demangle.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>

namespace iket::capture {
namespace {

constexpr size_t kLongest = size_t{64} << 10;
// With k references to earlier parts a name can stand for 3^(k/3) times its letters, and the
// demangler knows no limit: 30 hold it below some 60 MB, for names made on purpose.
constexpr size_t kMaxReferences = 30;
// The demangler of GCC's runtime gives up above about this length; not asking it saves its work.
constexpr size_t kMaxDemangled = 2048;

// How often `mangled` refers to an earlier part (S_, S0_, .., T_, T0_, ..). Letters of identifiers
// that look so are counted too, which errs on the safe side.
size_t References(std::string_view mangled) {
  size_t count = 0;
  for (size_t at = 0; at < mangled.size(); ++at) {
    if (mangled[at] != 'S' && mangled[at] != 'T') continue;
    const size_t end = mangled.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", at + 1);
    if (end != mangled.npos && mangled[end] == '_') ++count;
  }
  return count;
}

// Nothing when `name` is no mangled name, or too much for the demangler.
std::optional<std::string> Demangle(const std::string& name) {
  if (name.size() > kMaxDemangled || References(name) > kMaxReferences) return std::nullopt;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return std::nullopt;
  std::string demangled(text.get());
  if (demangled.size() > kLongest) return std::nullopt;
  return demangled;
}

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
  const std::string name(mangled);
  if (!name.starts_with("_Z")) return name;
  if (std::optional<std::string> text = Demangle(name)) return *std::move(text);
  return QualifiedName(mangled).value_or(name);
}

}  // namespace iket::capture
