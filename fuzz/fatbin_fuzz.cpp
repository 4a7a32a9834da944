// A fatbin that reads must come back byte-identical when nothing is replaced, and must read again,
// with the new code in it, when every cubin is.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cubin/fatbin.h"

namespace {

using namespace iket;
using namespace iket::cubin;

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const UntrustedBytes bytes(data, size);
  for (const UntrustedBytes found : FindFatbins(bytes)) Require(FatbinSize(found) == found.size());
  const auto fatbin = ReadFatbin(bytes);
  if (!fatbin) return 0;
  const auto same = RebuildFatbin(*fatbin, {});
  Require(same && same->size() == fatbin->bytes.size() &&
          std::memcmp(same->data(), data, same->size()) == 0);

  constexpr std::byte kCode[13] = {std::byte{0x7f}, std::byte{'E'}};
  std::vector<Replacement> replacements;
  for (size_t i = 0; i < fatbin->entries.size(); ++i) {
    (void)fatbin->entries[i].ArchName();
    (void)Decompress(fatbin->entries[i]);
    if (fatbin->entries[i].kind == EntryKind::kElf) replacements.push_back({i, kCode});
  }
  const auto rebuilt = RebuildFatbin(*fatbin, replacements);
  Require(rebuilt.has_value());
  const auto again = ReadFatbin(UntrustedBytes(*rebuilt));
  Require(again && again->entries.size() == fatbin->entries.size());
  for (const Replacement& replacement : replacements) {
    const FatbinEntry& entry = again->entries[replacement.entry];
    Require(entry.compression() == Compression::kNone && entry.payload.size() == 16);
    Require(std::memcmp(entry.payload.data(), kCode, sizeof kCode) == 0);
  }
  return 0;
}
