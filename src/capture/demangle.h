// demangle.h: C++ names for people.
#pragma once

#include <string>
#include <string_view>

namespace iket::capture {

// The demangled form of an Itanium-ABI name (`_Z...`), or the name itself when it is not one or
// cannot be demangled. Names come from untrusted cubins; the cost is linear in the result, and
// results above 64 KiB are given up (the mangled name is returned).
std::string DemangledName(std::string_view mangled);

}  // namespace iket::capture
