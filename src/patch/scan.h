// scan.h: can some code hold marks at all, ours or another tool's?
//
// Every image that any library loads is asked, so this is the cost of tracing to those without
// marks. About 9 GB/s on a Xeon, whatever the bytes are (docs/benchmarks/guest.md).
#pragma once

#include "base/bytes.h"

namespace iket::patch {

// True if the bytes, of a cubin or of PTX, hold the name of a declaration.
bool MayHoldMarks(UntrustedBytes code);

}  // namespace iket::patch
