// patch.h: turns a cubin with marks into one that records them.
//
// PatchImage is a function from image to image. It touches only kernels that can reach a mark, and
// leaves everything else, byte for byte, as it was. What it cannot patch stays untouched with the
// reason recorded; one refused kernel does not keep others from being patched. A function is
// patched only if every kernel that can reach it is: a mark without its kernel's trampoline would
// store to wherever UR0:UR1 happens to point.
//
// Sites of events that nobody wants stay as they are, byte for byte, if the code shows which event
// each of them is: marks, and begins and ends of scoped ranges. A pop does not say whose it is, so
// pushes and pops stay or go together, by image: they go if no push of the image is wanted and all
// its sites show their events. What else nobody wants is recorded, and its declaration says so. A
// kernel or function without a site that is wanted needs no patching on its own account.
//
// The result runs only after the host has written the window's base to the constant `__iket_window`
// in the context (window_constant.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cubin/image.h"
#include "patch/declaration.h"
#include "patch/foreign.h"
#include "patch/locations.h"
#include "ring/cta_filter.h"
#include "ring/layout.h"

namespace iket::patch {

struct SiteReport {
  uint64_t offset = 0;  // of its last slot in its code section, bytes
  bool has_payload = false;
  uint32_t event = 0;     // its id; 0: the code does not show which
  bool left_out = false;  // nobody wants its event: it is as it was
  Location place{};       // with -lineinfo
};

struct FunctionReport {
  std::string name;  // mangled
  bool is_kernel = false;
  std::vector<SiteReport> sites;
  std::string refusal;          // why it is not patched; empty if it is, or would be
  bool has_trampoline = false;  // a kernel that begins and ends are recorded of, or would be
  ring::CtaFilter filter{};     // of a kernel with a trampoline: who records
  std::array<uint32_t, 3> cluster_ctas{};  // that the kernel was compiled for; 0: the launch says
  bool left_out = false;  // nobody wants its records: it is as it was, or has no CTA that
                          // passes, because it shares functions with others
  uint32_t sites_left_out = 0;
  uint32_t number = 0;       // of a kernel with a trampoline: what its begin records carry
  bool reads_cta_yz = true;  // its identity records carry blockIdx.y and .z
  uint32_t registers = 0;    // a thread, before
  uint32_t patched_registers = 0;
};

struct ImageReport {
  std::string arch;  // "sm_90a"
  std::vector<Declaration> declarations;
  std::vector<Edge> edges;
  // Those with marks, kernels with a trampoline, and functions in which warps of those end.
  std::vector<FunctionReport> functions;
  std::vector<std::string> problems;  // of declarations
  ForeignMarks foreign;

  bool has_marks() const { return !declarations.empty() || !functions.empty() || foreign.any(); }
};

// What is in an image and what would be done with it; patches nothing. A broken code section is an
// error, marks that cannot be patched are not.
Result<ImageReport> Inspect(const cubin::Image& image);

// What of a kernel is wanted.
struct Choice {
  bool wanted = true;
  bool unmarked = false;  // begin and end of its warps, even if it has no marks
  ring::CtaFilter filter{};
};

struct Options {
  ring::Layout layout;
  uint32_t first_kernel = 0;  // number of the first kernel that gets a trampoline
  // Numbers of kernels by mangled name which they keep, as they are in other images of the same
  // program; may be null.
  const std::map<std::string, uint32_t, std::less<>>* numbered = nullptr;
  // By mangled name; without it all of every kernel is wanted.
  std::function<Choice(const std::string&)> choose{};
  // Names that a user gives bare PMTRIG instructions, as marks, in images that declare no events.
  NamedTriggers triggers{};
  // By the name of an event, never a pop's, or its category, group or lane; without it all are
  // wanted.
  std::function<bool(const std::string&)> wants_event{};
};

struct Patched {
  ImageReport report;
  // The new image; nothing when no function could be or had to be patched.
  std::optional<std::vector<std::byte>> image;
};

Result<Patched> PatchImage(const cubin::Image& image, const Options& options);

}  // namespace iket::patch
