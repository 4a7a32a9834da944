// The strict check of an offline page over any bytes. What must hold: each fault lies inside of
// what was read; a page that is sound has the parts that it counts.
//
// The mutator changes a part of the page, unpacked, or a column of a block, and packs it again, so
// that what is behind base64 and a checksum is reached.
#include <libdeflate.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/page_block_check.h"
#include "export/page_check.h"
#include "export/page_elements.h"
#include "mutate.h"

namespace {

namespace exporter = iket::exporter;
namespace fuzz = iket::fuzz;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Changed(std::string_view bytes) {
  return std::string(TextOf(fuzz::Changed(std::as_bytes(std::span(bytes)), 32)));
}

void PutSized(std::string_view column, std::string& block) {
  uint64_t size = column.size();
  for (; size >= 0x80; size >>= 7) block += static_cast<char>(size | 0x80);
  block += static_cast<char>(size);
  block += column;
}

// One column of a part of a block changed, the others as they were.
std::string ChangedBlock(std::string_view block, std::minstd_rand& random) {
  std::vector<std::string_view> columns;
  exporter::PageColumn all(block);
  while (!all.done()) {
    const auto size = all.Next();
    const auto column = size ? all.Take(*size) : std::nullopt;
    if (!column) return Changed(block);
    columns.push_back(*column);
  }
  if (columns.empty()) return Changed(block);
  const size_t which = random() % columns.size();
  std::string result;
  for (size_t i = 0; i < columns.size(); ++i) {
    PutSized(i == which ? Changed(columns[i]) : columns[i], result);
  }
  return result;
}

std::string Element(std::string_view id, std::string_view bytes) {
  auto* const compressor = libdeflate_alloc_compressor(1);
  Require(compressor != nullptr);
  std::string packed(libdeflate_zlib_compress_bound(compressor, bytes.size()), '\0');
  packed.resize(libdeflate_zlib_compress(compressor, bytes.data(), bytes.size(), packed.data(),
                                         packed.size()));
  libdeflate_free_compressor(compressor);
  std::string text;
  exporter::AppendElement(id, bytes.size(), packed, text);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto policy = exporter::PagePolicy(TextOf(bytes))) {
    (void)exporter::WhatPolicyAdmits(*policy);
  }
  // Whether it begins as ours or not: what comes then has to be safe by itself.
  exporter::Faults faults;
  const auto contents = exporter::CheckPage(bytes, faults);
  Require(faults.first().size() <= faults.count());
  for (const auto& fault : faults.first()) Require(fault.offset <= size);
  Require(faults.count() != 0 || !contents.counts.empty());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  const std::string page(reinterpret_cast<const char*>(data), size);
  const exporter::PageElements parts = exporter::TakeApart(page);
  if (parts.all.empty() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const exporter::PageElement& element = parts.all[random() % parts.all.size()];
  const auto unpacked = exporter::Unpack(element);
  if (!unpacked) return LLVMFuzzerMutate(data, size, max_size);
  const bool is_json = element.id == "head" || element.id == "links";
  const std::string changed = is_json ? Changed(*unpacked) : ChangedBlock(*unpacked, random);
  std::string result = page;
  result.replace(element.offset, element.end() - element.offset, Element(element.id, changed));
  return fuzz::Replace(data, size, max_size, std::as_bytes(std::span(result)));
}
