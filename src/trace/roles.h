// roles.h: what the warps of a CTA are for, where they do not all do the same.
//
// A specialised kernel has warps that load and others that multiply, and says so by the names of
// their ranges and marks. The role of a warp is the names that not all warps of its launch have,
// those that take most time first, long ones cut. Warps are taken by their index within the CTA,
// over all CTAs.
//
// Cost: a pass over the ranges and marks of the launch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/model.h"

namespace iket::trace {

// At most so many names make up a role.
inline constexpr size_t kMostRoleNames = 2;

// By warp index: its role, "load, wait". An index that is not there has none: it has no name of its
// own, is not known, or all of the launch do the same.
std::map<uint32_t, std::string> RolesOf(const Model& model, const Launch& launch);

}  // namespace iket::trace
