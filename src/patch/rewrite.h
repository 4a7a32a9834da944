// rewrite.h: the patched contents of one code section.
#pragma once

#include <vector>

#include "patch/analysis.h"
#include "patch/trampoline.h"

namespace iket::patch {

struct RewrittenCode {
  std::vector<sass::Instruction> code;
  std::vector<uint32_t> exit_offsets;  // bytes, where EXIT stands now
};

// Rewrites the sites that are not left out, and, with `entry`, the first instruction; every EXIT
// gets its stub. New code goes behind the old, so that no offset of the compiler's changes.
// `section` has no refusal.
RewrittenCode Rewrite(const CodeSection& section, const ring::Layout& layout,
                      const EntryOptions* entry);

}  // namespace iket::patch
