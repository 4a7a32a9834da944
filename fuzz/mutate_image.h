// mutate_image.h: a mutator for targets whose input is a cubin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cubin/image.h"
#include "mutate.h"

namespace iket::fuzz {

// Changes the contents of one section of a cubin, in place or with the file laid out anew around
// it. Any bytes that are no cubin, and a cubin one time in four, are changed blindly. `wanted` says
// which sections count.
template <typename Wanted>
size_t MutateSection(uint8_t* data, size_t size, size_t max_size, unsigned seed, Wanted wanted) {
  auto image = cubin::Image::Parse(UntrustedBytes(data, size));
  if (!image || seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  seed /= 4;
  std::vector<uint32_t> sections;
  for (uint32_t i = 0; i < image->sections().size(); ++i) {
    if (!image->sections()[i].data.empty() && wanted(image->sections()[i])) sections.push_back(i);
  }
  if (sections.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const uint32_t chosen = sections[seed / 2 % sections.size()];
  const cubin::Section& section = image->sections()[chosen];
  if (seed % 2 == 0) {
    const std::vector<std::byte> changed = Changed(section.data, 0);
    std::memcpy(data + section.parsed_offset, changed.data(), changed.size());
    return size;
  }
  if (!image->SetSectionData(chosen, Changed(section.data, 64))) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  return Replace(data, size, max_size, image->Serialize());
}

}  // namespace iket::fuzz
