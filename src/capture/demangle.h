// demangle.h: C++ names for people.
#pragma once

#include <string>
#include <string_view>

namespace iket::capture {

// The demangled form of an Itanium-ABI name (`_Z...`), or the name itself when it is not one.
//
// Names come from untrusted cubins, and a short one may stand for endless text. Where that may be,
// or where the runtime's demangler gives up (names above about 1,200 letters), the qualified name
// is given alone: `cutlass::device_kernel<...>(...)`. At most 64 KiB. Thread-safe.
std::string DemangledName(std::string_view mangled);

}  // namespace iket::capture
