// A cubin of any bytes, patched, for all events and for some. What must hold: what comes out can be
// read, and no mark is left in it where nothing was refused, but those that were left out.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cubin/image.h"
#include "mutate_image.h"
#include "patch/patch.h"
#include "patch/scan.h"
#include "ring/layout.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

using iket::patch::FunctionReport;

bool IsRefused(const FunctionReport& function) { return !function.refusal.empty(); }

void CheckWhatIsLeft(const iket::patch::Patched& patched) {
  const auto again = iket::cubin::Image::Parse(iket::UntrustedBytes(*patched.image));
  Require(again.has_value());
  const auto rest = iket::patch::Inspect(*again);
  Require(rest.has_value());
  if (std::ranges::any_of(patched.report.functions, IsRefused)) return;
  size_t left_out = 0, left = 0;
  for (const FunctionReport& function : patched.report.functions) {
    left_out += function.sites_left_out;
  }
  for (const FunctionReport& function : rest->functions) left += function.sites.size();
  Require(left <= left_out);
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
  if (patched->image) CheckWhatIsLeft(*patched);

  const auto chosen = patch::PatchImage(
      *image, {.layout = ring::MakeLayout(32 << 10, 132).value(),
               .wants_event = [](const std::string& name) { return name.size() % 2 == 0; }});
  if (chosen && chosen->image) CheckWhatIsLeft(*chosen);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateSection(data, size, max_size, seed,
                                   [](const iket::cubin::Section&) { return true; });
}
