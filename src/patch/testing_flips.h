// testing_flips.h: images of which some bits were turned over. For tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "cubin/testing.h"
#include "patch/patch.h"

namespace iket::patch::testing {

// Patches damaged copies of these files of tests/data/patch: no crash, and what is written can be
// read. How many were patched.
inline size_t PatchFlippedBits(std::initializer_list<const char*> files, uint32_t seed,
                               const Options& options) {
  std::mt19937 random(seed);
  size_t patched_images = 0;
  for (const char* file : files) {
    const auto bytes_of_file =
        cubin::testing::ReadFile(std::string(IKET_SOURCE_DIR "/tests/data/patch/") + file);
    const auto original = cubin::Image::Parse(UntrustedBytes(bytes_of_file));
    if (!original) {
      ADD_FAILURE() << file << ": " << original.error().message;
      continue;
    }
    const std::vector<std::byte> whole = original->Serialize();
    for (int round = 0; round < 400; ++round) {
      std::vector<std::byte> bytes = whole;
      for (uint32_t flips = 1 + random() % 8; flips > 0; --flips) {
        bytes[random() % bytes.size()] ^= std::byte{1} << random() % 8;
      }
      const auto image = cubin::Image::Parse(UntrustedBytes(bytes));
      if (!image) continue;
      const auto patched = PatchImage(*image, options);
      if (!patched || !patched->image) continue;
      ++patched_images;
      EXPECT_TRUE(cubin::Image::Parse(UntrustedBytes(*patched->image)));
    }
  }
  return patched_images;
}

}  // namespace iket::patch::testing
