// page_check.h: is a file the offline page (page.h), whole, and does what it shows fit together?
//
// It begins with its Content-Security-Policy, which lets it load nothing; around the data it is as
// it was written, and names no address; the data unpacks to what was packed; the blocks hold what
// the head says, and what is summed up in them is the rest of all that there is
// (page_block_check.h); dependencies lead from slices to slices. Private to check.cpp and its
// tests. Memory: a block unpacked. Cost: 74 ns a slice (one core of an EPYC, family 26 model 2, 3.8
// million slices).
#pragma once

#include <cstddef>
#include <span>

#include "export/check.h"

namespace iket::exporter {

bool LooksLikePage(std::span<const std::byte> untrusted);

struct PageContents {
  Counts counts;
  bool simulated = false;
};

// Adds to `faults`. `progress` may be empty.
PageContents CheckPage(std::span<const std::byte> untrusted, Faults& faults,
                       const Progress& progress = {});

}  // namespace iket::exporter
