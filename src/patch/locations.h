// locations.h: where in the source marks stand. Needs -lineinfo, and costs nothing at run time.
//
// A site's place is the innermost line outside of iket's own header, if the functions of the header
// that were inlined there are those of its event: ptxas gives copies of unrolled code no line of
// their own, and then they seem to be in the mark before them. What does not fit has no place.
//
// Where one such line makes marks of several names it may be a wrapper of the program's,
// `trace(name)`: then the place is the first line on the way out of it that makes one name alone,
// if there is one for all of them.
#pragma once

#include <string>
#include <vector>

#include "cubin/line_table.h"
#include "patch/declaration.h"

namespace iket::patch {

struct Location {
  std::string file;  // as the compiler was given it; empty: not known
  uint32_t line = 0;

  bool known() const { return line != 0; }
  friend bool operator==(const Location&, const Location&) = default;
};

// A site: what it stores, and its lines from the inside out.
struct LocatedSite {
  std::string name;
  EventKind kind = EventKind::kMark;
  std::vector<cubin::SourceLine> lines;
};

// The place of each site.
std::vector<Location> PlacesOf(const std::vector<LocatedSite>& sites);

}  // namespace iket::patch
