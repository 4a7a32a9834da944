#include "patch/locations.h"

#include <map>
#include <string_view>
#include <utility>

namespace iket::patch {
namespace {

using Frame = std::pair<std::string_view, uint32_t>;

bool IsOurs(std::string_view file) {
  constexpr std::string_view kHeader = "iket.cuh";
  return file == kHeader || file.ends_with("/iket.cuh");
}

// Lines outside of the header, from the inside out.
using Frames = std::vector<Frame>;

Frames FramesOf(const LocatedSite& site) {
  Frames frames;
  for (const cubin::SourceLine& line : site.lines) {
    if (frames.empty() && IsOurs(line.file)) continue;
    frames.emplace_back(line.file, line.line);
  }
  return frames;
}

// How many calls out of the line that makes all of `members` each line makes one name: 0 unless
// that line is a wrapper.
size_t DepthOf(const std::vector<LocatedSite>& sites, const std::vector<Frames>& frames,
               const std::vector<size_t>& members) {
  for (size_t depth = 0;; ++depth) {
    std::map<Frame, std::string_view> name_of;
    bool apart = true;
    for (const size_t i : members) {
      if (depth >= frames[i].size()) return 0;  // made there itself
      const auto& [at, name] = *name_of.try_emplace(frames[i][depth], sites[i].name).first;
      apart &= name == sites[i].name;
    }
    if (apart) return depth;
  }
}

}  // namespace

std::vector<Location> PlacesOf(const std::vector<LocatedSite>& sites) {
  std::vector<Frames> frames;
  std::map<Frame, std::vector<size_t>> made_by;
  for (size_t i = 0; i < sites.size(); ++i) {
    frames.push_back(FramesOf(sites[i]));
    if (!frames[i].empty()) made_by[frames[i][0]].push_back(i);
  }
  std::vector<Location> places(sites.size());
  for (const auto& [maker, members] : made_by) {
    const size_t depth = DepthOf(sites, frames, members);
    for (const size_t i : members) {
      const auto& [file, line] = frames[i][depth];
      places[i] = {.file = std::string(file), .line = line};
    }
  }
  return places;
}

}  // namespace iket::patch
