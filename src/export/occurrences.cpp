#include "export/occurrences.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "export/edges.h"

namespace iket::exporter {
namespace {

void Add(std::string& state, bool holds, std::string_view text) {
  if (!holds) return;
  if (!state.empty()) state += ", ";
  state += text;
}

}  // namespace

int64_t TraceNs(const trace::Model& model, double trace_ns) {
  return static_cast<int64_t>(GlobalNs(model, trace_ns) - GlobalNs(model, 0));
}

std::string_view KindWord(const trace::Model& model, const Occurrence& occurrence) {
  if (occurrence.is_range()) return "range";
  if (occurrence.unmatched_end) return "unmatched_end";
  switch (model.declarations[occurrence.declaration].kind) {
    case trace::EventKind::kFlowOut:
      return "flow_out";
    case trace::EventKind::kFlowIn:
      return "flow_in";
    case trace::EventKind::kSync:
      return "sync";
    case trace::EventKind::kUnknown:
      return "unknown";
    default:
      return "mark";
  }
}

std::string LabelOf(const trace::Model& model, const Occurrence& occurrence) {
  const trace::Declaration& declaration = model.declarations[occurrence.declaration];
  const std::string& name = model.NameOf(declaration);
  if (occurrence.unmatched_end) return name.empty() ? "unmatched pop" : "unmatched end of " + name;
  return declaration.kind == trace::EventKind::kUnknown ? "unknown event" : name;
}

std::string RangeState(uint8_t flags) {
  std::string state;
  Add(state, (flags & trace::kRangeUnclosed) != 0, "unclosed");
  Add(state, (flags & trace::kRangeCut) != 0, "cut");
  Add(state, (flags & trace::kRangeCrossed) != 0, "crossed");
  Add(state, (flags & trace::kRangeToken) != 0, "token");
  return state;
}

std::string WarpState(uint8_t flags) {
  std::string state;
  const auto add = [&](trace::WarpFlag flag, std::string_view text) {
    Add(state, (flags & flag) != 0, text);
  };
  add(trace::kWarpBeginMissing, "begin overwritten");
  add(trace::kWarpEndMissing, "no end");
  add(trace::kWarpRunning, "still running");
  add(trace::kWarpSuspect, "suspect");
  add(trace::kWarpWrapGap, "clock may have wrapped");
  add(trace::kWarpPartialExit, "lanes left early");
  add(trace::kWarpOrphan, "identity lost");
  add(trace::kWarpHoled, "middle overwritten in part");
  return state;
}

std::string RowLabel(std::string_view untrusted, uint64_t number) {
  constexpr size_t kMostBytes = 1024;
  std::string label;
  for (std::string_view rest = untrusted; !rest.empty();) {
    const size_t length = rest.front() == '\0' ? 0 : Utf8Length(rest);
    if (label.size() + std::max<size_t>(length, 3) > kMostBytes) {
      return label + fmt::format("... ({} bytes, #{})", untrusted.size(), number);
    }
    label += length == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, length);
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return label;
}

}  // namespace iket::exporter
