#include "patch/scan.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace iket::patch {
namespace {

// What ours and other tools' have in common.
constexpr std::string_view kName = "iket_";

// 16 bytes at once, on x86-64 and on aarch64 without more than their baseline.
using Lanes = unsigned char __attribute__((vector_size(16)));

Lanes Load(const char* at) {
  Lanes lanes;
  std::memcpy(&lanes, at, sizeof lanes);
  return lanes;
}

bool Any(Lanes lanes) {
  uint64_t halves[2];
  std::memcpy(halves, &lanes, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace

// The first and the last character at their distance are rare enough in code and in text, where one
// alone (memchr, so std::string_view::find) is every 15th character.
bool MayHoldMarks(UntrustedBytes code) {
  constexpr size_t kStep = 64;
  constexpr size_t kDistance = kName.size() - 1;
  const Lanes first = Lanes{} + static_cast<unsigned char>(kName.front());
  const Lanes last = Lanes{} + static_cast<unsigned char>(kName.back());
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  size_t at = 0;
  for (; text.size() - at >= kStep + kDistance; at += kStep) {
    const char* const block = text.data() + at;
    Lanes found{};
    for (size_t i = 0; i < kStep; i += sizeof(Lanes)) {
      found |= reinterpret_cast<Lanes>((Load(block + i) == first) &
                                       (Load(block + i + kDistance) == last));
    }
    if (Any(found) && text.substr(at, kStep + kDistance).find(kName) != text.npos) return true;
  }
  return text.substr(at).find(kName) != text.npos;
}

}  // namespace iket::patch
