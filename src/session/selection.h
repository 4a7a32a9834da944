// selection.h: what a person wants to be recorded, as `iket profile` tells it to the processes that
// it traces: which kernels, which of their CTAs and events, which launches.
//
// It travels as text in one environment variable, a line for each wish, so that a library preloaded
// by hand takes the same:
//
//   kernel REGEX        kernels in whose name, mangled or not, this extended expression is found
//   warps REGEX         begins and ends of warps of such kernels, though they have no marks
//   events REGEX        events in whose name this is found
//   pmevent N NAME      PMTRIG instructions of mask N are a mark of this name, in code that
//   declares
//                       no marks
//   cluster X,Y,Z       the cluster at this place of the grid (without clusters: the CTA)
//   cta-sample N        CTAs whose linear number is a multiple of N
//   sm 0-3,7            CTAs on these SMs
//   rule X,Y,Z|all TEXT the cluster of kernels whose mangled name is TEXT, or has it as a part:
//                       the longest such TEXT counts
//   launch A:B          launches [A, B) of recorded kernels, counted from 0 in each process
//   window session      nothing until the program says start (iket/session.h)
//   window nvtx NAME    only while an NVTX range of that name is open
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ring/cta_filter.h"

namespace iket::session {

inline constexpr char kEnvSelection[] = "IKET_SELECTION";
// NVTX's: the library that it tells of ranges.
inline constexpr char kEnvNvtx[] = "NVTX_INJECTION64_PATH";

// An expression that is found in no text: for `events`, which are then all left out.
inline constexpr char kNothing[] = "x^";

struct ClusterRule {
  std::string part;                                // of the mangled name
  std::optional<std::array<uint32_t, 3>> cluster;  // nothing: all clusters

  bool operator==(const ClusterRule&) const = default;
};

struct Selection {
  std::string kernels{};                       // empty: all
  std::string warps{};                         // empty: none
  std::string events{};                        // empty: all
  std::map<uint32_t, std::string> triggers{};  // names of bare PMTRIG instructions, by mask
  ring::CtaFilter ctas{};
  std::vector<ClusterRule> rules{};
  uint64_t first_launch = 0;
  uint64_t end_launch = UINT64_MAX;
  bool by_program = false;  // recording begins when the program says so
  std::string nvtx{};       // or in NVTX ranges of this name; empty: not

  bool windowed() const {
    return first_launch != 0 || end_launch != UINT64_MAX || by_program || !nvtx.empty();
  }
  bool operator==(const Selection&) const = default;
};

// The text of a selection; empty for one that wishes nothing.
std::string Encode(const Selection& selection);
// Errors (kUsage) name the line and what is wrong with it.
Result<Selection> DecodeSelection(std::string_view untrusted);

// The values of single wishes. Errors (kUsage) say what was expected.
Result<std::array<uint32_t, 3>> ParseCluster(std::string_view text);  // "X,Y,Z", "X,Y" or "X"
Result<uint32_t> ParseSample(std::string_view text);
Result<std::vector<ring::SmRange>> ParseSms(std::string_view text);
// "N" of a PMTRIG: 1 to 4095, and not the end of a range.
Result<uint32_t> ParseTrigger(std::string_view text);
// "A:B", "A:" or ":B"; "A" is launch A alone.
Result<std::pair<uint64_t, uint64_t>> ParseLaunches(std::string_view text);

// Which kernels a selection wants, and which of their events.
class KernelChooser {
 public:
  // Errors: kUsage (no regular expression). `selection` is copied.
  static Result<KernelChooser> Make(const Selection& selection);
  KernelChooser(KernelChooser&&) noexcept;
  KernelChooser& operator=(KernelChooser&&) noexcept;
  ~KernelChooser();

  bool Wants(const std::string& mangled, const std::string& demangled) const;
  // Also if it has no marks.
  bool WantsWarps(const std::string& mangled, const std::string& demangled) const;
  ring::CtaFilter Ctas(std::string_view mangled) const;
  bool WantsEvent(const std::string& name) const;

 private:
  struct Pattern;
  KernelChooser();
  ring::CtaFilter ctas_;
  std::vector<ClusterRule> rules_;
  std::unique_ptr<Pattern> pattern_;  // null: all
  std::unique_ptr<Pattern> warps_;    // null: none
  std::unique_ptr<Pattern> events_;   // null: all
};

}  // namespace iket::session
