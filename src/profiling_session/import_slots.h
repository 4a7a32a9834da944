// import_slots.h: the slots through which a loaded object calls functions of others (x86-64 ELF).
#pragma once

#include <cstddef>
#include <functional>

namespace iket::profiling_session {

// What a slot is to hold from now on: null leaves it as it is.
struct Import {
  const char* name;
  void* value;  // what it holds now
  bool bound;  // false: it still leads to the dynamic linker, which would bind it at the first call
};
using Choose = std::function<void*(const Import&)>;

// Asks `choose` for each slot of each loaded object whose name `skip` does not hold for, and
// returns how many were changed. Slots that the dynamic linker has made read-only are writable
// meanwhile. Other threads may call through them: each slot is stored to in one piece.
size_t RebindImports(const std::function<bool(const char* path)>& skip, const Choose& choose);

}  // namespace iket::profiling_session
