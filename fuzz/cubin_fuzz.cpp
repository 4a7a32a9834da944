// A cubin that parses must come back byte-identical, must survive edits, and what was written with
// edits must parse again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cubin/image.h"
#include "cubin/image_kind.h"
#include "cubin/kernels.h"
#include "cubin/line_table.h"
#include "cubin/nvinfo.h"
#include "mutate_image.h"

namespace {

using namespace iket;
using namespace iket::cubin;

void Require(bool holds) {
  if (!holds) std::abort();
}

void ReadAll(const Image& image) {
  (void)image.ArchName();
  (void)ReadCallGraph(image);
  const auto functions = Functions(image);
  if (!functions) return;
  const LineTable lines(image);
  for (const Function& function : *functions) {
    for (uint64_t at = 0; at < function.size && at < 4096; at += 16) {
      (void)lines.At(function.section, function.offset + at);
    }
    (void)GetRegisterCount(image, function.symbol);
    (void)ExitOffsets(image, function.section);
    (void)Parameters(image, function.section);
    (void)UsesSetMaxNReg(image, function.section);
  }
}

void Edit(Image& image) {
  const auto functions = Functions(image);
  if (functions) {
    for (const Function& function : *functions) {
      (void)SetRegisterCount(image, function.symbol, 24);
      const auto code = image.sections()[function.section].data;
      std::vector<std::byte> grown(code.begin(), code.end());
      grown.resize(grown.size() + 100);
      if (grown.size() < (1 << 16)) (void)image.SetSectionData(function.section, grown);
    }
  }
  NewSection constant;
  constant.name = ".nv.constant3";
  constant.flags = kFlagAlloc;
  constant.align = 8;
  constant.data.resize(8);
  const auto section = image.AddSection(std::move(constant));
  NewSymbol symbol;
  symbol.name = "iket_ring";
  symbol.section = section.value_or(0);
  symbol.size = 8;
  (void)image.AddSymbol(symbol);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const UntrustedBytes bytes(data, size);
  (void)KindOf(bytes);
  auto image = Image::Parse(bytes);
  if (!image) return 0;
  const auto same = image->Serialize();
  Require(same.size() == size && std::memcmp(same.data(), data, size) == 0);
  ReadAll(*image);
  Edit(*image);
  const auto edited = image->Serialize();
  const auto again = Image::Parse(UntrustedBytes(edited));
  Require(again.has_value());
  Require(again->sections().size() == image->sections().size());
  for (size_t i = 0; i < again->sections().size(); ++i) {
    Require(again->sections()[i].name == image->sections()[i].name);
    Require(again->sections()[i].size == image->sections()[i].size ||
            again->sections()[i].type == kSectionSymbolTable ||
            again->sections()[i].type == kSectionStringTable ||
            again->sections()[i].type == kSectionSymbolIndices || i == 0);
  }
  Require(again->Serialize() == edited);
  // A driver is given the pointer alone.
  const auto found = UntrustedImageAt(edited.data());
  Require(found.has_value() && found->bytes.size() <= edited.size());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return fuzz::MutateSection(data, size, max_size, seed, [](const Section&) { return true; });
}
