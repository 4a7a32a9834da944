// testing.h: what the tests of this room share: files of tests/data/cubin, and bytes written to
// order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cubin/image.h"

namespace iket::cubin::testing {

using Bytes = std::vector<std::byte>;

inline std::filesystem::path DataFolder() { return IKET_SOURCE_DIR "/tests/data/cubin"; }

inline Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

// A file of tests/data/cubin.
inline Bytes Data(std::string_view name) { return ReadFile(DataFolder() / name); }

// Names of all files there that end like this, sorted.
inline std::vector<std::string> DataNames(std::string_view ending) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(DataFolder())) {
    const std::string name = entry.path().filename();
    if (std::string_view(name).ends_with(ending)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Image ParseData(std::string_view name) {
  auto image = Image::Parse(UntrustedBytes(Data(name)));
  EXPECT_TRUE(image) << name << ": " << image.error().message;
  return std::move(image).value();
}

// Writes `value` over the bytes at `offset`.
template <typename T>
void Poke(Bytes& bytes, uint64_t offset, T value) {
  ASSERT_LE(offset + sizeof value, bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <typename T>
T Peek(const Bytes& bytes, uint64_t offset) {
  return UntrustedBytes(bytes).Read<T>(offset).value();
}

// The file offset of the header of a section.
inline uint64_t HeaderOf(const Bytes& cubin, uint32_t section) {
  return Peek<ElfHeader>(cubin, 0).sections_offset + section * sizeof(ElfSection);
}

// For test suites that run over files: a name that GTest accepts.
inline std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

}  // namespace iket::cubin::testing
