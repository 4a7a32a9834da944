// excerpt.h: a part of a model, as a model: for whoever wants some launches, CTAs, SMs, names or a
// window of time.
//
// What is in the window stays whole: a range that overlaps it keeps its beginning and its end, and
// so does the life of a warp, so no duration is another than in the whole; a point is in it or is
// not. Nothing is renamed or moved: times keep their axis, ranges their depth, launches the times,
// shape and completeness that they have in the whole; rows are numbered anew. What was lost stays
// counted for the whole capture. Arrows stay where both of their ends do.
//
// Cost: what is kept, and a step for each warp of the launches that are asked for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ring/cta_filter.h"
#include "trace/model.h"

namespace iket::trace {

// All of what is asked for must hold.
struct ExcerptOf {
  std::vector<bool> launches{};  // by row; empty: all
  std::vector<bool>
      declarations{};  // by row: of ranges and points, of a range what opens it; empty: all
  std::optional<std::array<uint32_t, 3>> cluster{};  // as Model::ClusterOf
  std::optional<std::array<uint32_t, 3>> cta{};
  std::vector<ring::SmRange> sms{};                   // empty: all
  std::optional<std::pair<double, double>> window{};  // trace time, the end not included
};

// Which rows of a model are asked for. Neither may go while it is in use. A step each.
class ExcerptRows {
 public:
  ExcerptRows(const Model& model, const ExcerptOf& of) : model_(model), of_(of) {}

  bool HasLaunch(uint32_t launch) const { return of_.launches.empty() || of_.launches[launch]; }
  bool HasWarp(uint32_t warp) const;  // of a launch that is asked for
  // Of a warp that is asked for; an event that is no end of a range.
  bool HasRange(uint32_t warp, uint32_t range) const;
  bool HasPoint(uint32_t warp, uint32_t event) const;
  // Whether something that lasts from `begin` to `end`, trace time, is within the window.
  bool Overlaps(double begin, double end) const;

 private:
  bool HasDeclaration(uint32_t declaration) const {
    return of_.declarations.empty() || of_.declarations[declaration];
  }

  const Model& model_;
  const ExcerptOf& of_;
};

// All of it, with warps and what is theirs in the order of launches.
Model Rearranged(const Model& model);

// Warps, launches and events that are not asked for are not in it. `words` says what was asked for;
// it and how much is left become Model::filter.
Model Excerpt(const Model& model, const ExcerptOf& of, const std::string& words);

}  // namespace iket::trace
