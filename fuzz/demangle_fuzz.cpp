// Names of kernels come from cubins: any bytes give some name, soon and of bounded length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "capture/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  const std::string text = iket::capture::DemangledName(name);
  if (text.size() > (size_t{64} << 10) && text.size() > size + 64) std::abort();
  if (!name.starts_with("_Z") && text != name) std::abort();
  return 0;
}
