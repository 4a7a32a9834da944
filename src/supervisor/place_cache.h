// place_cache.h: where the SMs of this machine's GPUs sit, kept from run to run.
//
// Finding it out takes a CUDA context (0.2 s), and it does not change while a driver is installed.
// One small text file a GPU in $XDG_CACHE_HOME/iket, or ~/.cache/iket. What cannot be kept is found
// out again; what is in a file is untrusted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/content.h"

namespace iket::supervisor {

class PlaceCache {
 public:
  // In the folder of this user; `driver` is the version of the kernel module.
  static PlaceCache OfUser();
  // An empty folder: nothing is kept.
  PlaceCache(std::string folder, std::string driver)
      : folder_(std::move(folder)), driver_(std::move(driver)) {}

  // By %smid, -1 where that cannot be known; empty if nothing is kept of this GPU, or not of so
  // many SMs.
  std::vector<capture::SmPlace> Load(const std::array<uint8_t, 16>& uuid, uint32_t sm_count) const;
  void Keep(const std::array<uint8_t, 16>& uuid, const std::vector<capture::SmPlace>& places) const;

 private:
  std::string PathOf(const std::array<uint8_t, 16>& uuid) const;

  std::string folder_, driver_;
};

}  // namespace iket::supervisor
