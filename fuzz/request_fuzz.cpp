// A request of HTTP of any bytes, as anybody on this machine may send one to `iket view`. What must
// hold: what is let through is a whole head, with a path of printable characters.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/request.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = iket::serve::ParseRequest(text);
  if (!request) return 0;
  Require(text.ends_with(iket::serve::kEndOfHead));
  Require(request->path.starts_with('/'));
  for (const char c : request->path) Require(c > 0x20 && c < 0x7f);
  return 0;
}
