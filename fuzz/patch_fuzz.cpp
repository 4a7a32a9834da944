// A cubin of any bytes, patched. What must hold: what comes out can be read, and no mark is left in
// it where nothing was refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cubin/image.h"
#include "mutate_image.h"
#include "patch/patch.h"
#include "patch/scan.h"
#include "ring/layout.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace iket;
  const UntrustedBytes bytes(data, size);
  const bool may_hold_marks = patch::MayHoldMarks(bytes);
  const auto image = cubin::Image::Parse(bytes);
  if (!image) return 0;
  const auto inspected = patch::Inspect(*image);
  const auto patched =
      patch::PatchImage(*image, {.layout = ring::MakeLayout(32 << 10, 132).value()});
  if (!patched) return 0;
  Require(inspected && inspected->functions.size() == patched->report.functions.size());
  Require(may_hold_marks || patched->report.declarations.empty());
  if (!patched->image) return 0;

  const auto again = cubin::Image::Parse(UntrustedBytes(*patched->image));
  Require(again.has_value());
  const auto rest = patch::Inspect(*again);
  Require(rest.has_value());
  const auto refused = [](const patch::FunctionReport& f) { return !f.refusal.empty(); };
  if (std::ranges::any_of(patched->report.functions, refused)) return 0;
  for (const patch::FunctionReport& left : rest->functions) Require(left.sites.empty());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateSection(data, size, max_size, seed,
                                   [](const iket::cubin::Section&) { return true; });
}
