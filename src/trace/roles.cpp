#include "trace/roles.h"

#include <algorithm>
#include <utility>

namespace iket::trace {
namespace {

// What warps of one index spent under each name: cycles, and one for each mark.
using Names = std::map<StringId, uint64_t>;

// A name may be a megabyte, and stands on many rows.
std::string Shortened(const std::string& name) {
  constexpr size_t kMostBytes = 40;
  if (name.size() <= kMostBytes) return name;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(name[at]) & 0xc0) == 0x80; };
  size_t end = kMostBytes - 3;
  while (end > 0 && continues(end)) --end;
  return name.substr(0, end) + "...";
}

std::string RoleOf(const Model& model, const Names& names, const Names& everybodys) {
  std::vector<std::pair<uint64_t, StringId>> own;
  for (const auto& [name, weight] : names) {
    if (!everybodys.contains(name)) own.emplace_back(weight, name);
  }
  std::ranges::sort(own, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return model.String(a.second) < model.String(b.second);
  });
  std::string role;
  for (size_t i = 0; i < std::min(own.size(), kMostRoleNames); ++i) {
    role += (i == 0 ? "" : ", ") + Shortened(model.String(own[i].second));
  }
  return role;
}

}  // namespace

std::map<uint32_t, std::string> RolesOf(const Model& model, const Launch& launch) {
  // By declaration; each time counts for something, however short it was.
  std::map<uint32_t, std::vector<uint64_t>> weights;
  const Warps& warps = model.warps;
  for (uint32_t warp = launch.first_warp; warp < launch.first_warp + launch.warp_count; ++warp) {
    if (warps.index[warp] == kNoRow) continue;
    std::vector<uint64_t>& of_warp = weights[warps.index[warp]];
    of_warp.resize(model.declarations.size());
    for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
      const uint32_t range = warps.first_range[warp] + i;
      const uint64_t begin = model.ranges.begin_cycles[range];
      const uint64_t end = model.ranges.end_cycles[range];
      of_warp[model.ranges.declaration[range]] += end > begin ? end - begin : 1;
    }
    for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
      ++of_warp[model.events.declaration[model.marks.event[warps.first_mark[warp] + i]]];
    }
  }
  std::map<uint32_t, Names> by_index;
  for (const auto& [index, of_warp] : weights) {
    Names& names = by_index[index];
    for (size_t i = 0; i < of_warp.size(); ++i) {
      if (of_warp[i] != 0) names[model.declarations[i].name] += of_warp[i];
    }
  }
  Names everybodys;
  if (!by_index.empty()) everybodys = by_index.begin()->second;
  for (const auto& [index, names] : by_index) {
    std::erase_if(everybodys, [&](const auto& name) { return !names.contains(name.first); });
  }
  everybodys.try_emplace(0);  // what has no name makes no role

  std::map<uint32_t, std::string> roles;
  for (const auto& [index, names] : by_index) {
    std::string role = RoleOf(model, names, everybodys);
    if (!role.empty()) roles.emplace(index, std::move(role));
  }
  return roles;
}

}  // namespace iket::trace
