// host_object.h: does the program or shared library that holds some code say that it has marks?
//
// Objects that iket.cuh compiled marks into carry an ELF note (docs/placeholder.md). Compressed
// code of everybody else need not be unpacked to learn that it has none: libraries hold thousands
// of such images. Cost: one walk over the loaded objects, less for the object that was asked about
// last.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace iket::inject {

// Marks of other tools (patch/foreign.h) leave no note. So objects that are no larger than most
// programs are looked into all the same; to unpack 16 MiB takes about 20 ms.
inline constexpr uint64_t kSmallObject = uint64_t{16} << 20;

enum class HostObject {
  kNone,      // in no object that the dynamic linker loaded: memory that the program filled
  kMarked,    // in one with the note
  kSmall,     // in one without, of at most kSmallObject bytes in memory
  kUnmarked,  // in a larger one without
};
HostObject HostObjectAt(const void* address) noexcept;

// True if the note is among the notes of a segment aligned to `align`. Stops at the first that is
// damaged.
bool HasNote(UntrustedBytes segment, uint64_t align) noexcept;

}  // namespace iket::inject
