#include "patch/foreign.h"

#include <cstring>

#include "base/bytes.h"

namespace iket::patch {
namespace {

constexpr std::string_view kPrefix = "__iket_evt_decl_";
constexpr uint32_t kDeclarationSize = 60;
constexpr uint64_t kMethodOffset = 8;
constexpr uint64_t kNameOffset = 28;
constexpr uint64_t kNameCapacity = 32;

std::string MethodName(uint32_t method) {
  switch (method) {
    case 1:
      return "PMTRIG5";
    case 2:
      return "PMTRIG6";
    case 3:
      return "NativeDump";
    case 4:
      return "UTraceEvent";
    case 5:
      return "ExtendedNativeDump";
    default:
      return fmt::format("method {}", method);
  }
}

}  // namespace

ForeignMarks FindForeignMarks(const cubin::Image& image) {
  ForeignMarks marks;
  for (const cubin::Symbol& symbol : image.symbols()) {
    if (!symbol.name.starts_with(kPrefix) || !symbol.has_section) continue;
    const UntrustedBytes section(image.sections()[symbol.section].data);
    const auto bytes = section.Slice(symbol.value, kDeclarationSize);
    if (!bytes || bytes->Read<uint32_t>(0) != kDeclarationSize) {
      ++marks.malformed;
      continue;
    }
    ++marks.events;
    if (marks.method.empty()) marks.method = MethodName(*bytes->Read<uint32_t>(kMethodOffset));
    const char* name = reinterpret_cast<const char*>(bytes->data()) + kNameOffset;
    marks.names.emplace_back(name, strnlen(name, kNameCapacity));
  }
  return marks;
}

}  // namespace iket::patch
