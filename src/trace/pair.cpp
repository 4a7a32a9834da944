#include "trace/pair.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <span>

#include "trace/drop_events.h"
#include "trace/open_tokens.h"

namespace iket::trace {
namespace {

class Pairing {
 public:
  explicit Pairing(Model& model) : model_(model) {
    for (const Declaration& declaration : model.declarations) {
      meanings_.push_back({declaration.kind, declaration.name, declaration.left_out});
      hides_ |= declaration.left_out;
    }
    if (hides_) hidden_.resize(model.events.cycles.size());
  }

  void Run() {
    Reserve();
    Warps& warps = model_.warps;
    warps.first_range.resize(warps.size());
    warps.range_count.resize(warps.size());
    warps.first_mark.resize(warps.size());
    warps.mark_count.resize(warps.size());
    for (uint32_t warp = 0; warp < warps.size(); ++warp) {
      warps.first_range[warp] = ranges_;
      warps.first_mark[warp] = marks_;
      PairWarp(warp);
      warps.range_count[warp] = ranges_ - warps.first_range[warp];
      warps.mark_count[warp] = marks_ - warps.first_mark[warp];
    }
    Resize(ranges_);
    model_.marks.event.resize(marks_);
    if (hides_) DropEvents(hidden_, model_);
  }

 private:
  struct Meaning {
    EventKind kind;
    StringId name;
    bool hidden;  // Declaration::left_out
  };
  struct Open {
    StringId name;
    uint32_t range;  // kNoRow: hidden
    uint16_t depth;
    bool scoped;  // of kRangeBegin
  };
  // A range that was closed since the last one was opened.
  struct Closed {
    Open open;
    bool again;  // other lanes closed it once more
  };

  // Makes room for all ranges and marks at once.
  void Reserve() {
    std::vector<uint32_t> events_of(meanings_.size());
    for (uint32_t row : model_.events.declaration) ++events_of[row];
    size_t opens = 0, marks = 0;
    for (size_t row = 0; row < meanings_.size(); ++row) {
      if (meanings_[row].hidden) continue;
      const EventKind kind = meanings_[row].kind;
      if (Opens(kind)) opens += events_of[row];
      if (IsPoint(kind)) marks += events_of[row];
    }
    Resize(opens);
    model_.marks.event.resize(marks);
  }

  void Resize(size_t size) {
    Ranges& ranges = model_.ranges;
    ranges.warp.resize(size);
    ranges.declaration.resize(size);
    ranges.begin_cycles.resize(size);
    ranges.end_cycles.resize(size);
    ranges.payload.resize(size);
    ranges.depth.resize(size);
    ranges.flags.resize(size);
    ranges.begin_event.resize(size);
    ranges.end_event.resize(size);
  }

  void PairWarp(uint32_t warp) {
    const uint32_t first = model_.warps.first_event[warp];
    const uint32_t last = first + model_.warps.event_count[warp];
    const uint32_t* declaration = model_.events.declaration.data();
    overflow_.clear();
    tokens_.NextWarp();
    lossy_ = (model_.warps.flags[warp] & kWarpBeginMissing) != 0;
    uint32_t hole = NextHole(first, last);
    for (uint32_t event = first; event < last; ++event) {
      if (event == hole) [[unlikely]] {
        Cut(event == first ? model_.warps.begin_cycles[warp] : model_.events.cycles[event - 1]);
        hole = NextHole(event + 1, last);
      }
      const Meaning meaning = meanings_[declaration[event]];
      if (meaning.hidden) [[unlikely]] {
        hidden_[event] = true;
        if (meaning.kind == EventKind::kPush) OpenHidden();
        continue;
      }
      switch (meaning.kind) {
        case EventKind::kMark:
        case EventKind::kFlowOut:
        case EventKind::kFlowIn:
        case EventKind::kUnknown:
          model_.marks.event[marks_++] = event;
          break;
        case EventKind::kPush:
          OpenRange(warp, event, meaning.name, false);
          break;
        case EventKind::kRangeBegin:
          OpenRange(warp, event, meaning.name, true);
          break;
        case EventKind::kPop:
          if (!overflow_.empty()) {  // the innermost open range is one of those left out
            if (overflow_.back()) hidden_[event] = true;
            overflow_.pop_back();
          } else {
            CloseRange(event, [](const Open& open) { return !open.scoped; });
          }
          break;
        case EventKind::kRangeEnd:
          CloseRange(event, [name = meaning.name](const Open& open) {
            return open.scoped && open.name == name;
          });
          break;
        case EventKind::kTokenBegin:
          OpenToken(warp, event, meaning.name);
          break;
        case EventKind::kTokenEnd:
          CloseToken(event, meaning.name);
          break;
      }
    }
    model_.counters.unclosed_ranges += shown_ + tokens_.open();
    EndAll(model_.warps.end_cycles[warp], kRangeUnclosed);
  }

  // The first hole among these events, or kNoRow.
  uint32_t NextHole(uint32_t first, uint32_t last) const {
    const auto hole = std::ranges::lower_bound(model_.holes, first);
    return hole != model_.holes.end() && *hole < last ? *hole : kNoRow;
  }

  // Records are lost here: what is open may be closed among them, and what they opened is unknown.
  void Cut(uint64_t cycles) {
    model_.counters.ranges_cut += shown_ + tokens_.open();
    EndAll(cycles, kRangeUnclosed | kRangeCut);
    overflow_.clear();
    lossy_ = true;
  }

  void EndAll(uint64_t cycles, uint8_t flags) {
    for (const Open& open : std::span(stack_).first(depth_)) {
      if (open.range == kNoRow) continue;
      model_.ranges.end_cycles[open.range] = cycles;
      model_.ranges.end_event[open.range] = kNoRow;
      model_.ranges.flags[open.range] |= flags;
    }
    tokens_.EndAll([&](uint32_t range) {
      model_.ranges.end_cycles[range] = cycles;
      model_.ranges.end_event[range] = kNoRow;
      model_.ranges.flags[range] |= flags;
    });
    ForgetClosed();
    depth_ = 0;
    shown_ = 0;
    in_order_ = true;
  }

  void OpenRange(uint32_t warp, uint32_t event, StringId name, bool scoped) {
    ForgetClosed();
    if (depth_ == kMaxDepth) {
      ++model_.counters.depth_overflows;
      if (!scoped) overflow_.push_back(false);
      return;
    }
    const uint16_t depth = in_order_ ? static_cast<uint16_t>(shown_) : LowestFreeDepth();
    const uint32_t range = AddRange(warp, event, depth, 0);
    stack_[depth_++] = {name, range, depth, scoped};
    ++shown_;
  }

  uint32_t AddRange(uint32_t warp, uint32_t event, uint16_t depth, uint8_t flags) {
    Ranges& ranges = model_.ranges;
    const uint32_t range = ranges_++;
    ranges.warp[range] = warp;
    ranges.declaration[range] = model_.events.declaration[event];
    ranges.begin_cycles[range] = model_.events.cycles[event];
    ranges.payload[range] = model_.events.payload[event];
    ranges.depth[range] = depth;
    ranges.flags[range] = flags;
    ranges.begin_event[range] = event;
    return range;
  }

  // The token is the begin's clock.
  void OpenToken(uint32_t warp, uint32_t event, StringId name) {
    const auto token = static_cast<uint32_t>(model_.events.cycles[event]);
    if (tokens_.open() == OpenTokens::kMost) {
      ++model_.counters.depth_overflows;
      tokens_.Drop(name, token);
      return;
    }
    const uint16_t depth = tokens_.TakeDepth(name);
    tokens_.Open(name, token, AddRange(warp, event, depth, kRangeToken), depth);
  }

  void CloseToken(uint32_t event, StringId name) {
    const auto token = static_cast<uint32_t>(model_.events.payload[event] >> 32);
    model_.events.payload[event] &= 0xffffffffu;
    const OpenTokens::Closed closed = tokens_.Close(name, token);
    if (closed.range != kNoRow) {
      model_.ranges.end_cycles[closed.range] = model_.events.cycles[event];
      model_.ranges.end_event[closed.range] = event;
    } else if (closed.known) {
      ++model_.counters.tokens_again;
    } else if (token != 0) {  // else a sentinel's
      model_.unmatched_ends.push_back(event);
      ++(lossy_ ? model_.counters.unmatched_ends_lossy : model_.counters.unmatched_ends);
    }
  }

  // A push that is not shown. Its pop has no name, so it has to be waited for.
  void OpenHidden() {
    if (depth_ == kMaxDepth) {
      overflow_.push_back(true);
    } else {
      stack_[depth_++] = {0, kNoRow, 0, false};
    }
  }

  template <typename Matches>
  void CloseRange(uint32_t event, Matches&& matches) {
    uint32_t at = depth_;
    while (at > 0 && !matches(stack_[at - 1])) --at;
    if (at == 0) {
      if (CloseAgain(event, matches)) return;
      model_.unmatched_ends.push_back(event);
      ++(lossy_ ? model_.counters.unmatched_ends_lossy : model_.counters.unmatched_ends);
      return;
    }
    const uint32_t range = stack_[at - 1].range;
    if (range == kNoRow) {
      hidden_[event] = true;
      std::copy(stack_.begin() + at, stack_.begin() + depth_, stack_.begin() + at - 1);
      --depth_;
      return;
    }
    closed_[closed_count_++] = {stack_[at - 1], false};
    model_.ranges.end_cycles[range] = model_.events.cycles[event];
    model_.ranges.end_event[range] = event;
    bool crossed = false;
    for (uint32_t above = at; above < depth_; ++above) {
      if (stack_[above].range != kNoRow) {
        model_.ranges.flags[stack_[above].range] |= kRangeCrossed;
        crossed = true;
      }
      stack_[above - 1] = stack_[above];
    }
    if (crossed) {
      ++model_.counters.crossed_closes;
      model_.ranges.flags[range] |= kRangeCrossed;
      in_order_ = false;
    }
    --depth_;
    if (--shown_ == 0) in_order_ = true;
  }

  // Lanes that leave a scope at different times, as at a return on one side of a branch, each end
  // its range: the last of them counts. Where the begin may have been overwritten, the end may be
  // that of another range.
  template <typename Matches>
  bool CloseAgain(uint32_t event, Matches&& matches) {
    if (lossy_) return false;
    for (uint32_t at = closed_count_; at-- > 0;) {
      Closed& closed = closed_[at];
      if (!closed.open.scoped || !matches(closed.open)) continue;
      closed.again = true;
      model_.ranges.end_cycles[closed.open.range] = model_.events.cycles[event];
      model_.ranges.end_event[closed.open.range] = event;
      ++model_.counters.closed_again;
      return true;
    }
    return false;
  }

  // From here on a close means another range. A range that was closed again later than one around
  // it does not lie inside of that any more.
  void ForgetClosed() {
    Ranges& ranges = model_.ranges;
    for (uint32_t i = 0; i < closed_count_; ++i) {
      if (!closed_[i].again) continue;
      const uint32_t inner = closed_[i].open.range;
      for (uint32_t j = i + 1; j < closed_count_; ++j) {
        const uint32_t outer = closed_[j].open.range;
        if (ranges.end_cycles[outer] >= ranges.end_cycles[inner]) continue;
        ranges.flags[inner] |= kRangeCrossed;
        ranges.flags[outer] |= kRangeCrossed;
      }
    }
    closed_count_ = 0;
  }

  // Ranges of a divergent warp keep their depths when one below them closes.
  uint16_t LowestFreeDepth() const {
    std::bitset<kMaxDepth> taken;
    for (const Open& open : std::span(stack_).first(depth_)) {
      if (open.range != kNoRow) taken.set(open.depth);
    }
    uint16_t depth = 0;
    while (taken[depth]) ++depth;
    return depth;
  }

  Model& model_;
  std::vector<Meaning> meanings_;
  bool hides_ = false;        // some declaration is left out
  std::vector<bool> hidden_;  // by event
  std::array<Open, kMaxDepth> stack_ = {};
  uint32_t depth_ = 0;
  uint32_t shown_ = 0;                         // of those, that are not hidden
  std::array<Closed, kMaxDepth> closed_ = {};  // each was open when the last range was opened
  uint32_t closed_count_ = 0;
  bool in_order_ = true;  // the i-th range of stack_ that is shown has depth i
  OpenTokens tokens_;
  std::vector<bool> overflow_;  // pushes left out and not popped yet: true if not to be shown
  bool lossy_ = false;          // the begin of what is closed may have been overwritten
  uint32_t ranges_ = 0;
  uint32_t marks_ = 0;
};

}  // namespace

void PairRanges(Model& model) { Pairing(model).Run(); }

}  // namespace iket::trace
