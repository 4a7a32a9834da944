#include "capture/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace iket::capture {

std::string DemangledName(std::string_view mangled) {
  constexpr size_t kLongest = size_t{64} << 10;
  std::string name(mangled);
  if (!mangled.starts_with("_Z") || mangled.size() > kLongest) return name;
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  if (status != 0 || text == nullptr) return name;
  std::string_view demangled(text.get());
  return demangled.size() > kLongest ? name : std::string(demangled);
}

}  // namespace iket::capture
