#include "cubin/kernels.h"

#include <algorithm>

#include "cubin/nvinfo.h"

namespace iket::cubin {

Result<std::vector<Function>> Functions(const Image& image) {
  std::vector<Function> functions;
  const auto& symbols = image.symbols();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.type != kSymbolFunction || !symbol.has_section ||
        symbol.section == kSectionIndexUndefined) {
      continue;
    }
    const Section& section = image.sections()[symbol.section];
    if (!UntrustedBytes(section.data).Contains(symbol.value, symbol.size)) {
      return Fail(
          ErrorKind::kBadInput,
          "cubin: function {:.200} claims {} bytes at {:#x} of section {:.200}, which has {}",
          symbol.name, symbol.size, symbol.value, section.name, section.data.size());
    }
    Function function;
    function.name = symbol.name;
    function.symbol = i;
    function.section = symbol.section;
    function.offset = symbol.value;
    function.size = symbol.size;
    function.is_kernel = (symbol.other & kOtherCudaEntry) != 0;
    functions.push_back(function);
  }
  return functions;
}

std::optional<uint32_t> UserConstantSection(const Image& image) {
  return image.FindSection(".nv.constant3");
}

Result<ParameterLayout> Parameters(const Image& image, uint32_t code_section) {
  ParameterLayout layout;
  const auto info = InfoSectionOf(image, code_section);
  if (!info) return layout;
  const Section& section = image.sections()[*info];
  AttributeReader reader(section.data);
  while (const auto attribute = reader.Next()) {
    if (attribute->Is(AttributeCode::kParamCbank)) {
      const uint32_t bank = attribute->Word(1).value_or(0);
      layout.base = bank & 0xffff;
      layout.size = bank >> 16;
    } else if (attribute->Is(AttributeCode::kKernelParam) ||
               attribute->Is(AttributeCode::kKernelParamV2)) {
      const auto place = attribute->Word(1);
      const auto shape = attribute->Word(2);
      if (!place || !shape) continue;
      const bool large = attribute->Is(AttributeCode::kKernelParamV2);
      layout.parameters.push_back(
          {*place & 0xffff, *place >> 16, large ? *shape & 0xffff : *shape >> 18});
    }
  }
  if (reader.failed()) {
    return Fail(ErrorKind::kBadInput, "cubin: {:.200} has no readable attribute at {}",
                section.name, reader.offset());
  }
  std::sort(layout.parameters.begin(), layout.parameters.end(),
            [](const Parameter& a, const Parameter& b) { return a.ordinal < b.ordinal; });
  return layout;
}

// The section is a row of pairs. A pair {0, -n} opens list n: 1 direct calls, 2 functions by the
// prototype under which their address is taken, 3 callers by the prototype that they call, 4 calls
// that 2 and 3 make possible.
Result<CallGraph> ReadCallGraph(const Image& image) {
  CallGraph graph;
  const auto index = image.FindSection(".nv.callgraph");
  if (!index) return graph;
  const Section& section = image.sections()[*index];
  const UntrustedBytes bytes(section.data);
  const size_t symbols = image.symbols().size();
  const auto bad = [&](uint64_t at) {
    return Fail(ErrorKind::kBadInput, "cubin: .nv.callgraph has no readable edge at {}", at);
  };
  constexpr uint32_t kLastList = static_cast<uint32_t>(-4);
  uint32_t list = 0;
  for (uint64_t at = 0; at < bytes.size(); at += sizeof(Call)) {
    const auto pair = bytes.Read<Call>(at);
    if (!pair) return bad(at);
    if (pair->caller == 0 && pair->callee >= kLastList) {
      list = ~pair->callee + 1;
      continue;
    }
    if (pair->caller >= symbols) return bad(at);
    const bool is_call = list == 1 || list == 4;
    if (is_call && pair->callee >= symbols) return bad(at);
    switch (list) {
      case 1:
        graph.direct.push_back(*pair);
        break;
      case 2:
        graph.address_taken.push_back(pair->caller);
        break;
      case 3:
        graph.calls_pointers.push_back(pair->caller);
        break;
      case 4:
        graph.indirect.push_back(*pair);
        break;
      default:
        return bad(at);
    }
  }
  return graph;
}

}  // namespace iket::cubin
