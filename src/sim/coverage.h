// coverage.h: how much of a cubin's machine code this machine knows: which words the decoder's
// table has no row for, and which the executor refuses.
//
// Counts whole code sections, so the NOPs that the compiler pads with are among the words; they are
// counted apart as well. A word that is counted as executed is one that has a handler: that the
// handler is right is what tests/corpus shows. Relocatable cubins count too.
//
// Cost: a word is bound once, and kept if it is refused and differs from the others in more than
// its control field.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "sass/instruction.h"

namespace iket::sim {

class Coverage {
 public:
  enum class Lack {
    kUnknown,      // no row in the decoder's table
    kUnsupported,  // it has a name, and nobody executes it
  };
  struct Refused {
    Lack lack = Lack::kUnknown;
    sass::Instruction word;  // the first one seen, of those that differ in the control field alone
    uint64_t count = 0;
    std::string where;  // of the first one: "file: function+0x120"
  };

  // Adds the code of an sm_90 cubin. Errors: kBadInput for anything else; nothing is counted then.
  Result<void> Add(UntrustedBytes cubin, std::string_view file);

  uint64_t kernels() const { return kernels_; }
  uint64_t words() const { return words_; }
  uint64_t nops() const { return nops_; }
  uint64_t unknown() const { return unknown_; }
  // All that are not executed, the unknown ones among them.
  uint64_t unsupported() const { return unsupported_; }
  // Each distinct refused word, the most frequent first.
  std::vector<Refused> refused() const;

 private:
  uint64_t kernels_ = 0, words_ = 0, nops_ = 0, unknown_ = 0, unsupported_ = 0;
  std::map<std::pair<uint64_t, uint64_t>, Refused> refused_;
};

}  // namespace iket::sim
