#include "patch/declaration.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

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

std::string Text(UntrustedBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Nothing unless they fill the bytes.
std::optional<std::vector<Attribute>> ParseAttributes(UntrustedBytes bytes) {
  std::vector<Attribute> attributes;
  constexpr size_t kMostAttributes = 64;
  for (uint64_t at = 0; at < bytes.size();) {
    if (attributes.size() == kMostAttributes) return {};
    const auto what = bytes.Read<uint8_t>(at);
    const auto number = bytes.Read<uint8_t>(at + 1);
    const auto length = bytes.Read<uint16_t>(at + 2);
    if (!what || !number || !length) return {};
    const auto text = bytes.Slice(at + 4, *length);
    if (!text) return {};
    attributes.push_back({static_cast<AttributeKind>(*what), *number, Text(*text)});
    at += 4 + uint64_t{*length};
  }
  return attributes;
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
  if (*header < kHeaderSize || *id == 0 || *id >> 31 != 0) return {};
  if (*kind > ring::kLastDeclaredKind && *kind != ring::kEdgeKind) return {};
  const auto name = bytes.Slice(*header, *length);
  if (!name) return {};
  Declaration declaration{
      .id = *id, .kind = static_cast<EventKind>(*kind), .payload = *payload, .name = Text(*name)};
  if (*header < kHeaderSize + 4) return declaration;
  const auto size = bytes.Read<uint32_t>(kHeaderSize);
  if (!size) return {};
  const auto attributes = bytes.Slice(uint64_t{*header} + *length + 1, *size);
  auto parsed = *size == 0 ? std::vector<Attribute>()
                           : (attributes ? ParseAttributes(*attributes) : std::nullopt);
  if (!parsed) return {};
  declaration.attributes = std::move(*parsed);
  return declaration;
}

Edge EdgeOf(const Declaration& declaration) {
  Edge edge;
  edge.from = declaration.name;
  for (const Attribute& attribute : declaration.attributes) {
    switch (attribute.what) {
      case AttributeKind::kTarget:
        edge.to = attribute.text;
        break;
      case AttributeKind::kLabel:
        edge.label = attribute.text;
        break;
      case AttributeKind::kVia:
        edge.via = attribute.text;
        break;
      case AttributeKind::kDag:
        edge.dag = attribute.text;
        break;
      default:
        break;
    }
  }
  return edge;
}

}  // namespace

Declarations ReadDeclarations(const cubin::Image& image) {
  Declarations result;
  std::set<std::tuple<uint32_t, uint64_t, uint64_t>> read;  // many symbols may name one array
  for (const cubin::Symbol& symbol : image.symbols()) {
    if (!IsData(symbol) || !symbol.has_section) continue;
    if (!NamesADeclaration(symbol.name)) continue;
    if (!read.emplace(symbol.section, symbol.value, symbol.size).second) continue;
    const UntrustedBytes section(image.sections()[symbol.section].data);
    const auto bytes = section.Slice(symbol.value, symbol.size);
    std::optional<Declaration> declaration;
    if (bytes) declaration = Parse(*bytes);
    if (declaration && static_cast<uint8_t>(declaration->kind) == ring::kEdgeKind) {
      result.edges.push_back(EdgeOf(*declaration));
    } else if (declaration) {
      result.all.push_back(std::move(*declaration));
    } else {
      result.problems.push_back(
          fmt::format("symbol {} does not hold a declaration of an event", symbol.name));
    }
  }
  const auto by_id = [](const Declaration& a, const Declaration& b) {
    return std::tie(a.id, a.kind, a.payload, a.name, a.attributes) <
           std::tie(b.id, b.kind, b.payload, b.name, b.attributes);
  };
  std::sort(result.all.begin(), result.all.end(), by_id);
  result.all.erase(std::unique(result.all.begin(), result.all.end()), result.all.end());
  std::ranges::sort(result.edges);
  const auto repeated = std::ranges::unique(result.edges);
  result.edges.erase(repeated.begin(), repeated.end());
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
