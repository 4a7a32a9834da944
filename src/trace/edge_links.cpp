#include "trace/edge_links.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

namespace iket::trace {
namespace {

// A range that was closed, or a mark. Within a CTA, so on one SM, cycles can be compared.
struct Occurrence {
  uint64_t begin = 0, end = 0;
  uint32_t begin_event = 0, end_event = 0;
  uint64_t payload = 0;
  bool has_payload = false;
};
using Occurrences = std::vector<Occurrence>;

// The occurrences of one name in the warps of a CTA that have any.
struct OfName {
  std::vector<uint32_t> warps;
  std::vector<Occurrences> lists;  // by the row in `warps`
};

class Linking {
 public:
  explicit Linking(const Model& model) : model_(model) {
    result_.counts.resize(model.edges.size());
    for (const DeclaredEdge& edge : model.edges) names_[edge.from], names_[edge.to];
    names_of_declaration_.resize(model.declarations.size());
    for (size_t row = 0; row < model.declarations.size(); ++row) {
      const auto found = names_.find(model.declarations[row].name);
      if (found != names_.end() && found->first != 0) names_of_declaration_[row] = &found->second;
    }
  }

  EdgeLinks Run() {
    if (model_.edges.empty()) return std::move(result_);
    const Warps& warps = model_.warps;
    for (const Launch& launch : model_.launches) {
      const uint32_t end = launch.first_warp + launch.warp_count;
      for (uint32_t first = launch.first_warp; first < end;) {  // by CTA
        uint32_t last = first + 1;
        while (last < end && SameCta(warps, first, last)) ++last;
        LinkCta(first, last);
        first = last;
      }
    }
    std::ranges::stable_sort(result_.links, {}, &EdgeLink::edge);
    return std::move(result_);
  }

 private:
  static bool SameCta(const Warps& warps, uint32_t a, uint32_t b) {
    return warps.cta_x[a] == warps.cta_x[b] && warps.cta_y[a] == warps.cta_y[b] &&
           warps.cta_z[a] == warps.cta_z[b] && warps.sm[a] == warps.sm[b];
  }

  void LinkCta(uint32_t first, uint32_t last) {
    for (auto& [name, of_name] : names_) of_name = {};
    for (uint32_t warp = first; warp < last; ++warp) {
      if ((model_.warps.flags[warp] & kWarpOrphan) == 0) Collect(warp);
    }
    for (uint32_t edge = 0; edge < model_.edges.size(); ++edge) {
      const OfName& from = names_.at(model_.edges[edge].from);
      const OfName& to = names_.at(model_.edges[edge].to);
      EdgeCounts& counts = result_.counts[edge];
      for (const Occurrences& list : from.lists) counts.from += list.size();
      for (const Occurrences& list : to.lists) counts.to += list.size();
      const bool own = from.warps == to.warps;
      for (size_t i = 0; i < from.lists.size(); ++i) {
        for (size_t j = own ? i : 0; j < (own ? i + 1 : to.lists.size()); ++j) {
          LinkWarps(edge, from.lists[i], to.lists[j]);
        }
      }
    }
  }

  void Collect(uint32_t warp) {
    const Ranges& ranges = model_.ranges;
    const uint32_t first_range = model_.warps.first_range[warp];
    for (uint32_t row = first_range; row < first_range + model_.warps.range_count[warp]; ++row) {
      if (ranges.end_event[row] == kNoRow) continue;
      Add(warp, ranges.declaration[row],
          {.begin = ranges.begin_cycles[row],
           .end = ranges.end_cycles[row],
           .begin_event = ranges.begin_event[row],
           .end_event = ranges.end_event[row],
           .payload = ranges.payload[row]});
    }
    const uint32_t first_mark = model_.warps.first_mark[warp];
    for (uint32_t row = first_mark; row < first_mark + model_.warps.mark_count[warp]; ++row) {
      const uint32_t event = model_.marks.event[row];
      const uint64_t cycles = model_.events.cycles[event];
      Add(warp, model_.events.declaration[event],
          {.begin = cycles,
           .end = cycles,
           .begin_event = event,
           .end_event = event,
           .payload = model_.events.payload[event]});
    }
  }

  void Add(uint32_t warp, uint32_t declaration, Occurrence occurrence) {
    OfName* const of_name = names_of_declaration_[declaration];
    if (of_name == nullptr) return;
    occurrence.has_payload = model_.declarations[declaration].payload != PayloadType::kNone;
    if (of_name->warps.empty() || of_name->warps.back() != warp) {
      of_name->warps.push_back(warp);
      of_name->lists.emplace_back();
    }
    of_name->lists.back().push_back(occurrence);
  }

  // In time order; by payload first, if `by_payload`.
  static std::vector<uint32_t> OrderOf(const Occurrences& list, bool by_payload) {
    std::vector<uint32_t> order(list.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) {
      return std::pair(by_payload ? list[i].payload : 0, list[i].begin);
    });
    return order;
  }

  void LinkWarps(uint32_t edge, const Occurrences& from, const Occurrences& to) {
    if (model_.edges[edge].from == model_.edges[edge].to) {
      const std::vector<uint32_t> order = OrderOf(from, false);
      for (size_t i = 1; i < order.size(); ++i) Link(edge, from[order[i - 1]], from[order[i]]);
      return;
    }
    if (from.size() != to.size()) {
      ++result_.counts[edge].unequal;
      return;
    }
    bool by_payload = std::ranges::all_of(from, &Occurrence::has_payload) &&
                      std::ranges::all_of(to, &Occurrence::has_payload);
    std::vector<uint32_t> sources = OrderOf(from, by_payload);
    std::vector<uint32_t> targets = OrderOf(to, by_payload);
    if (by_payload && !std::ranges::equal(
                          sources, targets, {}, [&](uint32_t i) { return from[i].payload; },
                          [&](uint32_t i) { return to[i].payload; })) {
      sources = OrderOf(from, false);
      targets = OrderOf(to, false);
    }
    for (size_t i = 0; i < sources.size(); ++i) Link(edge, from[sources[i]], to[targets[i]]);
  }

  void Link(uint32_t edge, const Occurrence& source, const Occurrence& target) {
    EdgeCounts& counts = result_.counts[edge];
    if (target.end < source.end) {
      ++counts.backward;
    } else if (result_.links.size() == kMostEdgeLinks) {
      ++counts.left_out;
    } else {
      ++counts.linked;
      const bool waits = target.begin < source.end;
      result_.links.push_back({.edge = edge,
                               .from = source.end_event,
                               .to = waits ? target.end_event : target.begin_event});
    }
  }

  const Model& model_;
  EdgeLinks result_;
  std::map<StringId, OfName> names_;           // that edges have
  std::vector<OfName*> names_of_declaration_;  // null: no edge has it
};

}  // namespace

EdgeLinks LinkEdges(const Model& model) { return Linking(model).Run(); }

}  // namespace iket::trace
