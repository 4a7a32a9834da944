// demangle.h: C++ names for people.
#pragma once

#include <string>
#include <string_view>

namespace iket::capture {

// The demangled form of an Itanium-ABI name (`_Z...`), or the name itself when it is not one.
//
// Names come from untrusted cubins, and a short one may stand for endless text. Where the result
// would pass 64 KiB, or the name holds what we do not understand (expressions), the qualified name
// is given alone: `cutlass::device_kernel<...>(...)`. Thread-safe.
std::string DemangledName(std::string_view mangled);

}  // namespace iket::capture
