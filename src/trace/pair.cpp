#include "trace/pair.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <span>
#include <utility>

#include "trace/drop_events.h"
#include "trace/open_tokens.h"

namespace iket::trace {
namespace {

class Pairing {
 public:
  explicit Pairing(Model& model) : model_(model) {
    std::map<std::pair<StringId, StringId>, uint32_t> rows{{{0, 0}, 0}};
    std::map<std::pair<uint32_t, StringId>, uint32_t> token_keys;
    for (const Declaration& declaration : model.declarations) {
      const auto key = std::pair(declaration.group, declaration.lane);
      const auto count = static_cast<uint32_t>(rows.size());
      const uint32_t row = rows.try_emplace(key, count).first->second;
      const uint32_t token = token_keys
                                 .try_emplace(std::pair(row, declaration.name),
                                              static_cast<uint32_t>(token_keys.size()))
                                 .first->second;
      // A pop does not say a row.
      const bool is_push = declaration.kind == EventKind::kPush;
      meanings_.push_back({.kind = declaration.kind,
                           .hidden = declaration.left_out,
                           .row = is_push ? 0 : row,
                           .name = declaration.name,
                           .token = token,
                           .payload = declaration.payload});
      hides_ |= declaration.left_out;
    }
    stacks_.resize(rows.size());
    stack_ = stacks_.data();
    if (hides_) hidden_.resize(model.events.cycles.size());
  }

  void Run(std::span<const uint32_t> declarations, const std::function<void(uint32_t warp)>& make) {
    Reserve(declarations);
    Warps& warps = model_.warps;
    warps.first_range.resize(warps.size());
    warps.range_count.resize(warps.size());
    warps.first_mark.resize(warps.size());
    warps.mark_count.resize(warps.size());
    for (uint32_t warp = 0; warp < warps.size(); ++warp) {
      warps.first_range[warp] = ranges_;
      warps.first_mark[warp] = marks_;
      if (make) make(warp);
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
    bool hidden;   // Declaration::left_out
    uint32_t row;  // by group and lane; 0 neither
    StringId name;
    uint32_t token;  // by row and name
    PayloadType payload;
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

  // The columns, which keep their places while warps are paired: a vector would be asked for its
  // own with each number.
  struct From {
    const uint32_t* declaration;
    const uint64_t* cycles;
    uint64_t* payload;
  };
  struct To {
    uint32_t *warp, *declaration;
    uint64_t *begin_cycles, *end_cycles, *payload;
    uint16_t* depth;
    uint8_t* flags;
    uint32_t *begin_event, *end_event;
    uint32_t* mark;
  };

  // What is open in one row of the warp.
  struct Stack {
    std::vector<Open> open;  // as many as were open at once
    uint32_t depth = 0;
    uint32_t shown = 0;          // of those, that are not hidden
    std::vector<Closed> closed;  // each was open when the last range was opened
    uint32_t closed_count = 0;
    bool used = false;     // by this warp
    bool in_order = true;  // the i-th range of `open` that is shown has depth i
  };

  // Makes room for all ranges and marks at once.
  void Reserve(std::span<const uint32_t> declarations) {
    std::vector<uint32_t> events_of(meanings_.size());
    for (const uint32_t row : declarations) ++events_of[row];
    size_t opens = 0, marks = 0;
    for (size_t row = 0; row < meanings_.size(); ++row) {
      if (meanings_[row].hidden) continue;
      const EventKind kind = meanings_[row].kind;
      if (Opens(kind)) opens += events_of[row];
      if (IsPoint(kind)) marks += events_of[row];
    }
    Resize(opens);
    model_.marks.event.resize(marks);
    Ranges& ranges = model_.ranges;
    to_ = {.warp = ranges.warp.data(),
           .declaration = ranges.declaration.data(),
           .begin_cycles = ranges.begin_cycles.data(),
           .end_cycles = ranges.end_cycles.data(),
           .payload = ranges.payload.data(),
           .depth = ranges.depth.data(),
           .flags = ranges.flags.data(),
           .begin_event = ranges.begin_event.data(),
           .end_event = ranges.end_event.data(),
           .mark = model_.marks.event.data()};
    from_ = {.declaration = model_.events.declaration.data(),
             .cycles = model_.events.cycles.data(),
             .payload = model_.events.payload.data()};
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
    overflow_.clear();
    tokens_.NextWarp();
    lossy_ = (model_.warps.flags[warp] & kWarpBeginMissing) != 0;
    uint32_t hole = NextHole(first, last);
    for (uint32_t event = first; event < last; ++event) {
      if (event == hole) [[unlikely]] {
        Cut(event == first ? model_.warps.begin_cycles[warp] : from_.cycles[event - 1]);
        hole = NextHole(event + 1, last);
      }
      const Meaning meaning = meanings_[from_.declaration[event]];
      if (meaning.hidden) [[unlikely]] {
        hidden_[event] = true;
        if (meaning.kind == EventKind::kPush) OpenHidden();
        continue;
      }
      if (meaning.row != 0) [[unlikely]] {
        UseRow(meaning.row);
      } else {
        stack_ = stacks_.data();
      }
      switch (meaning.kind) {
        case EventKind::kMark:
        case EventKind::kFlowOut:
        case EventKind::kFlowIn:
        case EventKind::kSync:
        case EventKind::kUnknown:
          to_.mark[marks_++] = event;
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
          OpenToken(warp, event, meaning.token);
          break;
        case EventKind::kTokenEnd:
          CloseToken(event, meaning);
          break;
        case EventKind::kTokenEither:
          PairEither(warp, event, meaning.token);
          break;
      }
    }
    model_.counters.unclosed_ranges += OpenNow();
    EndAll(model_.warps.end_cycles[warp], kRangeUnclosed);
  }

  // The first hole among these events, or kNoRow.
  uint32_t NextHole(uint32_t first, uint32_t last) const {
    const auto hole = std::ranges::lower_bound(model_.holes, first);
    return hole != model_.holes.end() && *hole < last ? *hole : kNoRow;
  }

  // Records are lost here: what is open may be closed among them, and what they opened is unknown.
  void Cut(uint64_t cycles) {
    model_.counters.ranges_cut += OpenNow();
    EndAll(cycles, kRangeUnclosed | kRangeCut);
    overflow_.clear();
    lossy_ = true;
  }

  size_t OpenNow() const {
    size_t open = tokens_.open();
    open += stacks_[0].shown;
    for (const uint32_t row : used_rows_) open += stacks_[row].shown;
    return open;
  }

  void EndAll(uint64_t cycles, uint8_t flags) {
    const auto end = [&](uint32_t range) {
      to_.end_cycles[range] = cycles;
      to_.end_event[range] = kNoRow;
      to_.flags[range] |= flags;
    };
    tokens_.EndAll(end);
    EndRow(stacks_[0], end);
    for (const uint32_t row : used_rows_) {
      EndRow(stacks_[row], end);
      stacks_[row].used = false;
    }
    used_rows_.clear();
  }

  template <typename End>
  void EndRow(Stack& stack, const End& end) {
    stack_ = &stack;
    for (const Open& open : std::span(stack.open).first(stack.depth)) {
      if (open.range != kNoRow) end(open.range);
    }
    ForgetClosed();
    stack.depth = 0;
    stack.shown = 0;
    stack.in_order = true;
  }

  void UseRow(uint32_t row) {
    stack_ = &stacks_[row];
    if (stack_->used) return;
    stack_->used = true;
    used_rows_.push_back(row);
  }

  void Push(const Open& open) {
    if (stack_->depth == stack_->open.size()) stack_->open.resize(stack_->depth + 8);
    stack_->open[stack_->depth++] = open;
  }

  void OpenRange(uint32_t warp, uint32_t event, StringId name, bool scoped) {
    ForgetClosed();
    if (stack_->depth == kMaxDepth) {
      ++model_.counters.depth_overflows;
      if (!scoped) overflow_.push_back(false);
      return;
    }
    const uint16_t depth =
        stack_->in_order ? static_cast<uint16_t>(stack_->shown) : LowestFreeDepth();
    const uint32_t range = AddRange(warp, event, depth, 0);
    Push({name, range, depth, scoped});
    ++stack_->shown;
  }

  uint32_t AddRange(uint32_t warp, uint32_t event, uint16_t depth, uint8_t flags) {
    const uint32_t range = ranges_++;
    to_.warp[range] = warp;
    to_.declaration[range] = from_.declaration[event];
    to_.begin_cycles[range] = from_.cycles[event];
    to_.payload[range] = from_.payload[event];
    to_.depth[range] = depth;
    to_.flags[range] = flags;
    to_.begin_event[range] = event;
    return range;
  }

  // The token is the begin's clock.
  void OpenToken(uint32_t warp, uint32_t event, uint32_t key) {
    const auto token = static_cast<uint32_t>(from_.cycles[event]);
    if (tokens_.open() == OpenTokens::kMost) {
      ++model_.counters.depth_overflows;
      tokens_.Drop(key, token);
      return;
    }
    const uint16_t depth = tokens_.TakeDepth(key);
    tokens_.Open(key, token, AddRange(warp, event, depth, kRangeToken), depth);
  }

  void CloseToken(uint32_t event, const Meaning& meaning) {
    const auto token = static_cast<uint32_t>(from_.payload[event] >> 32);
    from_.payload[event] &= 0xffffffffu;
    if (IsWide(meaning.payload)) TakeWidePayload(event);
    const OpenTokens::Closed closed = tokens_.Close(meaning.token, token);
    if (closed.range != kNoRow) {
      to_.end_cycles[closed.range] = from_.cycles[event];
      to_.end_event[closed.range] = event;
    } else if (closed.known) {
      ++model_.counters.tokens_again;
    } else if (token != 0) {  // else a sentinel's
      model_.unmatched_ends.push_back(event);
      ++(lossy_ ? model_.counters.unmatched_ends_lossy : model_.counters.unmatched_ends);
    }
  }

  // One of two: the first of a warp opens. Once records are lost nobody knows which is next.
  void PairEither(uint32_t warp, uint32_t event, uint32_t key) {
    constexpr uint32_t kAny = 0;
    if (lossy_) {
      model_.unmatched_ends.push_back(event);
      ++model_.counters.unmatched_ends_lossy;
      return;
    }
    if (const OpenTokens::Closed closed = tokens_.Close(key, kAny); closed.range != kNoRow) {
      to_.end_cycles[closed.range] = from_.cycles[event];
      to_.end_event[closed.range] = event;
    } else if (tokens_.open() == OpenTokens::kMost) {
      ++model_.counters.depth_overflows;
    } else {
      const uint16_t depth = tokens_.TakeDepth(key);
      tokens_.Open(key, kAny, AddRange(warp, event, depth, kRangeToken), depth);
    }
  }

  // Where its token had the place of the high word, the whole is among the values.
  void TakeWidePayload(uint32_t event) {
    const auto [first, last] = model_.values.Of(event);
    for (size_t i = first; i < last; ++i) {
      if (model_.values.index[i] == Values::kPayload) {
        from_.payload[event] = model_.values.value[i];
      }
    }
  }

  // A push that is not shown. Its pop has no name, so it has to be waited for.
  void OpenHidden() {
    if (stack_->depth == kMaxDepth) {
      overflow_.push_back(true);
    } else {
      Push({0, kNoRow, 0, false});
    }
  }

  template <typename Matches>
  void CloseRange(uint32_t event, Matches&& matches) {
    uint32_t at = stack_->depth;
    while (at > 0 && !matches(stack_->open[at - 1])) --at;
    if (at == 0) {
      if (CloseAgain(event, matches)) return;
      model_.unmatched_ends.push_back(event);
      ++(lossy_ ? model_.counters.unmatched_ends_lossy : model_.counters.unmatched_ends);
      return;
    }
    const uint32_t range = stack_->open[at - 1].range;
    if (range == kNoRow) {
      hidden_[event] = true;
      std::copy(stack_->open.begin() + at, stack_->open.begin() + stack_->depth,
                stack_->open.begin() + at - 1);
      --stack_->depth;
      return;
    }
    if (stack_->closed_count == stack_->closed.size()) {
      stack_->closed.resize(stack_->closed_count + 8);
    }
    stack_->closed[stack_->closed_count++] = {stack_->open[at - 1], false};
    to_.end_cycles[range] = from_.cycles[event];
    to_.end_event[range] = event;
    bool crossed = false;
    for (uint32_t above = at; above < stack_->depth; ++above) {
      if (stack_->open[above].range != kNoRow) {
        to_.flags[stack_->open[above].range] |= kRangeCrossed;
        crossed = true;
      }
      stack_->open[above - 1] = stack_->open[above];
    }
    if (crossed) {
      ++model_.counters.crossed_closes;
      to_.flags[range] |= kRangeCrossed;
      stack_->in_order = false;
    }
    --stack_->depth;
    if (--stack_->shown == 0) stack_->in_order = true;
  }

  // Lanes that leave a scope at different times, as at a return on one side of a branch, each end
  // its range: the last of them counts. Where the begin may have been overwritten, the end may be
  // that of another range.
  template <typename Matches>
  bool CloseAgain(uint32_t event, Matches&& matches) {
    if (lossy_) return false;
    for (uint32_t at = stack_->closed_count; at-- > 0;) {
      Closed& closed = stack_->closed[at];
      if (!closed.open.scoped || !matches(closed.open)) continue;
      closed.again = true;
      to_.end_cycles[closed.open.range] = from_.cycles[event];
      to_.end_event[closed.open.range] = event;
      ++model_.counters.closed_again;
      return true;
    }
    return false;
  }

  // From here on a close means another range. A range that was closed again later than one around
  // it does not lie inside of that any more.
  void ForgetClosed() {
    for (uint32_t i = 0; i < stack_->closed_count; ++i) {
      if (!stack_->closed[i].again) continue;
      const uint32_t inner = stack_->closed[i].open.range;
      for (uint32_t j = i + 1; j < stack_->closed_count; ++j) {
        const uint32_t outer = stack_->closed[j].open.range;
        if (to_.end_cycles[outer] >= to_.end_cycles[inner]) continue;
        to_.flags[inner] |= kRangeCrossed;
        to_.flags[outer] |= kRangeCrossed;
      }
    }
    stack_->closed_count = 0;
  }

  // Ranges of a divergent warp keep their depths when one below them closes.
  uint16_t LowestFreeDepth() const {
    std::bitset<kMaxDepth> taken;
    for (const Open& open : std::span(stack_->open).first(stack_->depth)) {
      if (open.range != kNoRow) taken.set(open.depth);
    }
    uint16_t depth = 0;
    while (taken[depth]) ++depth;
    return depth;
  }

  Model& model_;
  From from_{};
  To to_{};
  std::vector<Meaning> meanings_;
  bool hides_ = false;               // some declaration is left out
  std::vector<bool> hidden_;         // by event
  std::vector<Stack> stacks_;        // by row; pushes are of row 0
  Stack* stack_ = nullptr;           // that of the event
  std::vector<uint32_t> used_rows_;  // by this warp, but row 0
  OpenTokens tokens_;
  std::vector<bool> overflow_;  // pushes left out and not popped yet: true if not to be shown
  bool lossy_ = false;          // the begin of what is closed may have been overwritten
  uint32_t ranges_ = 0;
  uint32_t marks_ = 0;
};

}  // namespace

void PairRanges(Model& model) { PairRanges(model, model.events.declaration, {}); }

void PairRanges(Model& model, std::span<const uint32_t> declarations,
                const std::function<void(uint32_t warp)>& make) {
  Pairing(model).Run(declarations, make);
}

}  // namespace iket::trace
