#include "patch/locations.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace iket::patch {
namespace {

using Frame = std::pair<std::string, uint32_t>;

bool IsOurs(std::string_view file) {
  constexpr std::string_view kHeader = "iket.cuh";
  return file == kHeader || file.ends_with("/iket.cuh");
}

// Lines outside of the header, from the inside out.
using Frames = std::vector<Frame>;

// How the mangled names of the header's functions spell a literal: its characters, one by one.
// Empty for what they do not spell so.
std::string Spelled(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c <= 0) return "";
    text += fmt::format("Lc{}E", static_cast<int>(c));
  }
  return text.empty() ? "" : "_c" + text + "Lc0E";
}

bool SpellsNames(std::string_view function) {
  return function.find("_cLc") != std::string_view::npos;
}

// Whether the function that stores events of this kind and name is the innermost. Of names that are
// made by macros it says the kind alone.
bool StoresEvent(const LocatedSite& site, std::string_view function) {
  if (function.find(fmt::format("4kindE{}E", static_cast<int>(site.kind))) ==
      std::string_view::npos) {
    return false;
  }
  if (!SpellsNames(function)) return true;
  return function.find(Spelled(site.name)) != std::string_view::npos;
}

Frames FramesOf(const LocatedSite& site) {
  Frames frames;
  if (site.lines.empty() || !StoresEvent(site, site.lines.front().function)) return frames;
  for (const cubin::SourceLine& line : site.lines) {
    const bool ours = IsOurs(line.file);
    if (ours && !frames.empty()) return {};  // nobody calls the program from there
    if (!ours) frames.emplace_back(line.file, line.line);
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
  // Functions whose names say no event's: of two events one is in the other's row.
  std::map<std::string_view, std::set<std::string_view>> events_of;
  for (const LocatedSite& site : sites) {
    if (!site.lines.empty()) events_of[site.lines.front().function].insert(site.name);
  }
  std::vector<Frames> frames;
  std::map<Frame, std::vector<size_t>> made_by;
  for (size_t i = 0; i < sites.size(); ++i) {
    frames.push_back(FramesOf(sites[i]));
    if (frames[i].empty()) continue;
    const std::string_view function = sites[i].lines.front().function;
    if (!SpellsNames(function) && events_of[function].size() > 1) frames[i].clear();
    if (!frames[i].empty()) made_by[frames[i][0]].push_back(i);
  }
  std::vector<Location> places(sites.size());
  for (const auto& [maker, members] : made_by) {
    const size_t depth = DepthOf(sites, frames, members);
    for (const size_t i : members) {
      const auto& [file, line] = frames[i][depth];
      places[i] = {.file = file, .line = line};
    }
  }
  return places;
}

}  // namespace iket::patch
