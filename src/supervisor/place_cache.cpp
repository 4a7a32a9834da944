#include "supervisor/place_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;

// The first line of such a file, the driver's version behind it.
constexpr std::string_view kTitle = "iket places 1, driver ";
constexpr int32_t kMost = 1 << 16;

std::string FolderOfUser() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/iket";
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/iket" : std::string();
}

}  // namespace

PlaceCache PlaceCache::OfUser() {
  std::string version;
  std::ifstream file("/sys/module/nvidia/version");
  std::getline(file, version);
  return {FolderOfUser(), version};
}

std::string PlaceCache::PathOf(const std::array<uint8_t, 16>& uuid) const {
  std::string name = folder_ + "/places-";
  for (const uint8_t byte : uuid) name += fmt::format("{:02x}", byte);
  return name;
}

std::vector<capture::SmPlace> PlaceCache::Load(const std::array<uint8_t, 16>& uuid,
                                               uint32_t sm_count) const {
  if (folder_.empty()) return {};
  std::ifstream untrusted(PathOf(uuid));
  std::string line;
  if (!std::getline(untrusted, line) || line != std::string(kTitle) + driver_) return {};
  std::vector<capture::SmPlace> places;
  capture::SmPlace place;
  while (places.size() < sm_count && untrusted >> place.gpc >> place.tpc) {
    if (place.gpc < -1 || place.gpc > kMost || place.tpc < -1 || place.tpc > kMost) return {};
    places.push_back(place);
  }
  if (untrusted >> line || places.size() != sm_count) return {};
  return places;
}

void PlaceCache::Keep(const std::array<uint8_t, 16>& uuid,
                      const std::vector<capture::SmPlace>& places) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  // Whole or not at all, whoever else writes it meanwhile.
  const std::string path = PathOf(uuid), part = fmt::format("{}.{}", path, getpid());
  std::ofstream file(part, std::ios::trunc);
  file << kTitle << driver_ << "\n";
  for (const capture::SmPlace& place : places) file << place.gpc << " " << place.tpc << "\n";
  file.close();
  if (file) {
    fs::rename(part, path, ignored);
  } else {
    fs::remove(part, ignored);
  }
}

}  // namespace iket::supervisor
