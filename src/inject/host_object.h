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

enum class HostObject {
  kNone,      // in no object that the dynamic linker loaded: memory that the program filled
  kMarked,    // in one with the note
  kUnmarked,  // in one without
};
HostObject HostObjectAt(const void* address) noexcept;

// True if the note is among the notes of a segment aligned to `align`. Stops at the first that is
// damaged.
bool HasNote(UntrustedBytes segment, uint64_t align) noexcept;

}  // namespace iket::inject
