// foreign.h: marks that another tool put into an image.
//
// NVIDIA's IKET front ends (CuTe DSL), TileLang, TVM and programs that write the metadata by hand
// declare their events in arrays `__iket_evt_decl_*_attrs`. This version names them and leaves them
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cubin/image.h"

namespace iket::patch {

struct ForeignMarks {
  uint32_t events = 0;             // declarations found
  uint32_t malformed = 0;          // declarations too short or of an unknown size
  std::vector<std::string> names;  // of events, as declared, in order of their symbols
  std::string method;              // "NativeDump", "ExtendedNativeDump", "method 4", ...

  bool any() const { return events + malformed > 0; }
};

ForeignMarks FindForeignMarks(const cubin::Image& image);

}  // namespace iket::patch
