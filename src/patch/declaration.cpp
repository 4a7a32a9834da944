#include "patch/declaration.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"

namespace iket::patch {
namespace {

constexpr uint32_t kMagic = 0x54454b49;  // "IKET"
constexpr uint64_t kHeaderSize = 16;

// ptxas names a variable of function scope `$iket_decl$N`, `$__iket_decl__N$M` and the like.
bool NamesADeclaration(std::string_view symbol) {
  return symbol.find("iket_decl") != std::string_view::npos;
}

// Before linking, data has a symbol type of its own.
bool IsData(const cubin::Symbol& symbol) {
  return symbol.type == cubin::kSymbolObject || symbol.type == cubin::kSymbolCudaObject;
}

std::optional<Declaration> Parse(UntrustedBytes bytes) {
  const auto magic = bytes.Read<uint32_t>(0);
  const auto header = bytes.Read<uint16_t>(4);
  const auto kind = bytes.Read<uint8_t>(6);
  const auto payload = bytes.Read<uint8_t>(7);
  const auto id = bytes.Read<uint32_t>(8);
  const auto length = bytes.Read<uint32_t>(12);
  if (!magic || *magic != kMagic || !header || !kind || !payload || !id || !length) return {};
  // A later version may have a longer header; the name always follows it.
  if (*header < kHeaderSize || *kind > ring::kLastEventKind || *id == 0 || *id >> 31 != 0)
    return {};
  const auto name = bytes.Slice(*header, *length);
  if (!name) return {};
  return Declaration{
      .id = *id,
      .kind = static_cast<EventKind>(*kind),
      .payload = *payload,
      .name = std::string(reinterpret_cast<const char*>(name->data()), name->size())};
}

}  // namespace

Declarations ReadDeclarations(const cubin::Image& image) {
  Declarations result;
  for (const cubin::Symbol& symbol : image.symbols()) {
    if (!IsData(symbol) || !symbol.has_section) continue;
    if (!NamesADeclaration(symbol.name)) continue;
    const UntrustedBytes section(image.sections()[symbol.section].data);
    const auto bytes = section.Slice(symbol.value, symbol.size);
    std::optional<Declaration> declaration;
    if (bytes) declaration = Parse(*bytes);
    if (declaration) {
      result.all.push_back(std::move(*declaration));
    } else {
      result.problems.push_back(
          fmt::format("symbol {} does not hold a declaration of an event", symbol.name));
    }
  }
  const auto by_id = [](const Declaration& a, const Declaration& b) {
    return std::tie(a.id, a.kind, a.payload, a.name) < std::tie(b.id, b.kind, b.payload, b.name);
  };
  std::sort(result.all.begin(), result.all.end(), by_id);
  result.all.erase(std::unique(result.all.begin(), result.all.end()), result.all.end());
  for (size_t i = 1; i < result.all.size(); ++i) {
    const Declaration& a = result.all[i - 1];
    const Declaration& b = result.all[i];
    if (a.id != b.id) continue;
    result.problems.push_back(fmt::format(
        "\"{}\" and \"{}\" have the same id {:#x}: rename one, they cannot be told apart", a.name,
        b.name, a.id));
  }
  constexpr size_t kMostProblems = 20;
  if (const size_t count = result.problems.size(); count > kMostProblems) {
    result.problems.resize(kMostProblems);
    result.problems.push_back(
        fmt::format("and {} more of its declarations have something wrong", count - kMostProblems));
  }
  return result;
}

}  // namespace iket::patch
