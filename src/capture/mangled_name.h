// mangled_name.h: a demangler for names of kernels (Itanium C++ ABI). Private to the room.
//
// Why not abi::__cxa_demangle: it gives up on names above some 1,200 letters, which names of
// CUTLASS kernels pass; and it knows no limit to its output, while a hostile name of 300 letters
// can stand for more text than fits in any memory. This one takes names of any length and stops at
// a given size. What it says it says in the words of __cxa_demangle; a test compares the two.
//
// Not understood: expressions that depend on template parameters (`X..E`, `DT..E`), which do not
// occur in signatures of kernels but through SFINAE; such a name yields nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace iket::capture {

// The demangled form of `mangled` (`_Z...`), or nothing if it is not understood, nested more than
// some 100 levels deep, or longer than `max_bytes`. Time and memory are bounded by a multiple of
// `mangled.size() + max_bytes`.
std::optional<std::string> DemangleItanium(std::string_view mangled, size_t max_bytes);

}  // namespace iket::capture
