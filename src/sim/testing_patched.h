// testing_patched.h: an image as the patcher makes it, with the window of rings that it writes to.
#pragma once

#include <map>
#include <string>

#include "cubin/image.h"
#include "patch/patch.h"
#include "patch/window_constant.h"
#include "ring/layout.h"
#include "sim/testing.h"

namespace iket::sim::testing {

struct PatchedImage {
  const Image* image = nullptr;
  ring::Layout layout;
  uint64_t base = 0;
  std::vector<patch::Declaration> declarations{};
};

// Loads the patched form of an image, maps its window and tells it where that is.
inline PatchedImage LoadPatched(Device& device, const cubin::Image& original, uint32_t ring_bytes,
                                const decltype(patch::Options::wants_event)& wants_event = {}) {
  PatchedImage result;
  result.layout = ring::MakeLayout(ring_bytes, DeviceModel{}.sm_count).value();
  const auto patched =
      patch::PatchImage(original, {.layout = result.layout, .wants_event = wants_event}).value();
  EXPECT_TRUE(patched.image.has_value());
  result.declarations = patched.report.declarations;
  result.image = &device.LoadBytes(*patched.image);
  const uint64_t table = result.layout.table_bytes(), rings = result.layout.rings_bytes();
  const uint64_t reserved =
      device.space.Reserve(ring::kWindowAlignment + rings, ring::kWindowAlignment).value();
  result.base = reserved + ring::kWindowAlignment;
  const uint64_t start = result.base - ring::kTableOffset;
  EXPECT_TRUE(device.space.Map(start, table, AllocateHostMemory(table).value()));
  EXPECT_TRUE(device.space.Map(result.base, rings, AllocateHostMemory(rings).value()));
  const auto window = result.image->FindGlobal(patch::kWindowSymbol);
  EXPECT_TRUE(window.has_value());
  std::memcpy(device.space.Find(window->address, 8), &result.base, 8);
  return result;
}

inline PatchedImage LoadPatched(Device& device, const std::string& name, uint32_t ring_bytes,
                                const decltype(patch::Options::wants_event)& wants_event = {}) {
  const auto bytes = ReadFile(IKET_BINARY_DIR "/src/sim/" + name);
  return LoadPatched(device, cubin::Image::Parse(UntrustedBytes(bytes)).value(), ring_bytes,
                     wants_event);
}

// What all rings hold.
struct Records {
  uint32_t begins = 0, identities = 0, events = 0;
  std::map<uint32_t, uint32_t> by_id;
};
inline Records ReadRecords(Device& device, const PatchedImage& patched) {
  Records records;
  const uint32_t bytes = patched.layout.ring_bytes;
  for (uint32_t ring = 0; ring < patched.layout.ring_count(); ++ring) {
    const std::byte* const from = device.space.Find(patched.base + uint64_t{ring} * bytes, bytes);
    for (uint32_t at = 0; at < bytes; at += 16) {
      uint32_t words[2];
      std::memcpy(words, from + at, sizeof words);
      if (words[0] == 0 && words[1] == 0) break;  // never written
      if ((words[1] >> 31) == 0) {
        ++records.events;
        ++records.by_id[words[1]];
      } else if ((words[1] & 0xc00) == 0x400) {
        ++records.begins;
      } else {
        ++records.identities;
      }
    }
  }
  return records;
}

}  // namespace iket::sim::testing
