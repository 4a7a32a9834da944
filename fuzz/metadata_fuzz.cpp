// What an image says about its kernels and events: declarations, attributes, call graph. Its input
// is a cubin whose metadata alone is changed. What must hold: records of attributes lie side by
// side, one put in its own place changes nothing, and declarations come sorted and unlike.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ranges>
#include <vector>

#include "cubin/image.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "mutate_image.h"
#include "patch/declaration.h"
#include "patch/patch.h"

namespace {

using iket::UntrustedBytes;
namespace cubin = iket::cubin;
namespace patch = iket::patch;

void Require(bool holds) {
  if (!holds) std::abort();
}

void ReadAttributes(std::span<const std::byte> section) {
  cubin::AttributeReader reader(section);
  uint64_t end = 0;
  size_t records = 0;
  while (const auto attribute = reader.Next()) {
    Require(attribute->offset == end && attribute->size >= 4);
    end += attribute->size;
    Require(end <= section.size() && reader.offset() == end);
    if (attribute->format == cubin::AttributeFormat::kSized) {
      Require(attribute->payload.size() == attribute->value);
      for (size_t i = 0; i <= attribute->payload.size() / 4; ++i) {
        Require(attribute->Word(i).has_value() == ((i + 1) * 4 <= attribute->payload.size()));
      }
    }
    if (++records > 4) continue;  // each costs the whole section
    const auto same = cubin::ReplaceRecord(section, *attribute,
                                           section.subspan(attribute->offset, attribute->size));
    Require(std::ranges::equal(same, section));
  }
  Require(reader.failed() == (end != section.size()));
}

void ReadFunctions(const cubin::Image& image) {
  if (const auto graph = cubin::ReadCallGraph(image)) {
    for (const cubin::Call& call : graph->direct) {
      Require(call.caller < image.symbols().size() && call.callee < image.symbols().size());
    }
  }
  const auto functions = cubin::Functions(image);
  if (!functions) return;
  for (const cubin::Function& function : *functions) {
    const auto& code = image.sections()[function.section].data;
    Require(function.offset <= code.size() && function.size <= code.size() - function.offset);
    (void)cubin::GetRegisterCount(image, function.symbol);
    (void)cubin::UsesSetMaxNReg(image, function.section);
    (void)cubin::ExitOffsets(image, function.section);
    if (const auto layout = cubin::Parameters(image, function.section)) {
      Require(std::ranges::is_sorted(layout->parameters, {}, &cubin::Parameter::ordinal));
    }
  }
}

bool IsMetadata(const cubin::Section& section) {
  // Not the code, which patch_fuzz changes. Declarations are in .nv.global.init or the like.
  return !section.name.starts_with(".text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto image = cubin::Image::Parse(UntrustedBytes(data, size));
  if (!image) {
    ReadAttributes(std::as_bytes(std::span(data, size)));
    return 0;
  }
  for (const cubin::Section& section : image->sections()) {
    if (section.name.starts_with(".nv.info")) ReadAttributes(section.data);
  }
  ReadFunctions(*image);
  const patch::Declarations declarations = patch::ReadDeclarations(*image);
  const auto key = [](const patch::Declaration& d) {
    return std::tie(d.id, d.kind, d.payload, d.name, d.attributes);
  };
  for (size_t i = 0; i < declarations.all.size(); ++i) {
    const patch::Declaration& declaration = declarations.all[i];
    Require(declaration.id != 0 && declaration.id >> 31 == 0 && declaration.name.size() <= size);
    Require(i == 0 || key(declarations.all[i - 1]) < key(declaration));
  }
  (void)patch::Inspect(*image);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateSection(data, size, max_size, seed, IsMetadata);
}
