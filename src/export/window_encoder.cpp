#include "export/window_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "export/dag_json.h"
#include "export/occurrences.h"
#include "export/perfetto_fields.h"
#include "export/values.h"

namespace iket::exporter {
namespace {

using namespace perfetto;  // NOLINT(google-build-using-namespace): a table of field numbers
using trace::kNoRow;

// Interning ids of arguments, the same in every sequence: one more than the index here.
enum Argument : uint32_t {
  kPayload = 1,
  kEndPayload,
  kCycles,
  kCta,
  kWarp,
  kSm,
  kSlot,
  kState,
  kUnclosed
};
constexpr std::string_view kArgumentNames[] = {
    "payload", "end_payload", "cycles", "cta", "warp", "sm", "slot", "state", "unclosed"};

constexpr uint32_t kLifeTimeLabel = 0;

// A field whose tag and value take one byte each.
inline uint8_t* PutSmall(uint8_t* out, uint32_t field, uint8_t value) {
  *out++ = static_cast<uint8_t>(WireTag(field, WireType::kVarint));
  *out++ = value;
  return out;
}

inline uint8_t* PutTag(uint8_t* out, uint32_t field) {
  *out++ = static_cast<uint8_t>(WireTag(field, WireType::kLength));
  return out;
}

// An annotation whose value is what `put_value` writes; below 128 bytes.
template <typename PutValue>
inline uint8_t* PutArgument(uint8_t* out, uint32_t name, PutValue put_value) {
  out = PutTag(out, TrackEvent::kDebugAnnotations);
  uint8_t* const length = out++;
  out = PutVarintField(out, DebugAnnotation::kNameIid, name);
  out = put_value(out);
  *length = static_cast<uint8_t>(out - length - 1);
  return out;
}

// A value as its type says, or nothing where there is none.
inline uint8_t* PutPayload(uint8_t* out, uint32_t name, trace::PayloadType type, uint64_t payload) {
  const auto put = [&](uint32_t field, uint64_t value) {
    return PutArgument(out, name, [&](uint8_t* at) { return PutVarintField(at, field, value); });
  };
  const auto put_double = [&](double value) {
    return PutArgument(out, name, [&](uint8_t* at) {
      return PutDoubleField(at, DebugAnnotation::kDoubleValue, value);
    });
  };
  const auto low = static_cast<uint32_t>(payload);
  switch (type) {
    case trace::PayloadType::kNone:
      return out;
    case trace::PayloadType::kU32:
      return put(DebugAnnotation::kUintValue, low);
    case trace::PayloadType::kS32:
      return put(DebugAnnotation::kIntValue,
                 static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)}));
    case trace::PayloadType::kU64:
      return put(DebugAnnotation::kUintValue, payload);
    case trace::PayloadType::kS64:
      return put(DebugAnnotation::kIntValue, payload);
    case trace::PayloadType::kF32:
      return put_double(std::bit_cast<float>(low));
    case trace::PayloadType::kF64:
      return put_double(std::bit_cast<double>(payload));
  }
  return out;
}

void WriteArgument(ProtoWriter& writer, Argument name, uint64_t value) {
  auto annotation = writer.Message(TrackEvent::kDebugAnnotations);
  writer.Varint(DebugAnnotation::kNameIid, name);
  writer.Varint(DebugAnnotation::kUintValue, value);
}

void WriteArgument(ProtoWriter& writer, Argument name, std::string_view text) {
  auto annotation = writer.Message(TrackEvent::kDebugAnnotations);
  writer.Varint(DebugAnnotation::kNameIid, name);
  writer.Text(DebugAnnotation::kStringValue, text);
}

void WriteInterned(ProtoWriter& writer, uint32_t field, uint32_t iid, std::string_view name) {
  auto entry = writer.Message(field);
  writer.Varint(InternedName::kIid, iid);
  writer.Text(InternedName::kName, name);
}

void WriteClock(ProtoWriter& writer, uint32_t id, uint64_t ns, bool incremental) {
  auto clock = writer.Message(ClockSnapshot::kClocks);
  writer.Varint(Clock::kClockId, id);
  writer.Varint(Clock::kTimestamp, ns);
  if (incremental) writer.Varint(Clock::kIsIncremental, 1);
}

}  // namespace

WindowEncoder::WindowEncoder(const trace::Model& model, const TrackTree& tracks,
                             std::span<const trace::EdgeLink> links, bool range_cycles)
    : model_(model),
      tracks_(tracks),
      links_(links),
      range_cycles_(range_cycles),
      has_large_(model.flows.size() + model.values.size() != 0),
      iids_(1 + 2 * model.declarations.size() + model.edges.size(), 0),
      flows_by_source_(model.flows.size()) {
  for (uint32_t link = 0; link < links.size(); ++link) {
    link_ends_.push_back({links[link].from, link, false});
    link_ends_.push_back({links[link].to, link, true});
  }
  std::ranges::sort(link_ends_);
  std::iota(flows_by_source_.begin(), flows_by_source_.end(), 0u);
  std::ranges::stable_sort(flows_by_source_, {},
                           [&](uint32_t row) { return model.flows.from[row]; });
  for (const trace::Declaration& declaration : model.declarations) {
    NameArguments(declaration);
    if (declaration.category == 0) continue;
    categories_.try_emplace(declaration.category, static_cast<uint32_t>(categories_.size()));
  }
}

// An argument is called what its value is called, unless that is taken: of two with one name only
// one would be shown.
void WindowEncoder::NameArguments(const trace::Declaration& declaration) {
  std::array<uint32_t, ring::kMostValues>& numbers = arguments_.emplace_back();
  std::vector<std::string> names = ValueNames(model_, declaration, kArgumentNames);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string& name = names[i];
    if (name.empty()) continue;  // "payload"
    const auto next = static_cast<uint32_t>(value_names_.size() + 1);
    const auto [known, is_new] = value_names_.try_emplace(name, next);
    if (is_new) names_.push_back(std::move(name));
    numbers[i] = known->second;
  }
}

// Behind the names that all traces have each name of a value has two: at the end of a range it is
// another value.
uint32_t WindowEncoder::ArgumentOf(uint32_t declaration, size_t value, bool at_end) const {
  const uint32_t number = arguments_[declaration][value];
  if (number == 0) return at_end ? kEndPayload : kPayload;
  return static_cast<uint32_t>(std::size(kArgumentNames)) + 2 * number - 1 + (at_end ? 1 : 0);
}

uint32_t WindowEncoder::LabelOf(const Edge& edge) const {
  switch (edge.kind) {
    case EdgeKind::kWarpBegin:
      return kLifeTimeLabel;
    case EdgeKind::kRangeBegin:
    case EdgeKind::kMark:
      return 1 + edge.declaration;
    case EdgeKind::kUnmatchedEnd:
      return static_cast<uint32_t>(1 + model_.declarations.size()) + edge.declaration;
    case EdgeKind::kWarpEnd:
    case EdgeKind::kRangeEnd:
      break;
  }
  return kNoRow;
}

std::string WindowEncoder::LabelText(uint32_t label) const {
  if (label == kLifeTimeLabel) return "Warp Life Time";
  const size_t count = model_.declarations.size();
  if (label > 2 * count) {
    const trace::DeclaredEdge& edge = model_.edges[label - 1 - 2 * count];
    return EdgeLabel(model_, edge);
  }
  const bool unmatched = label > count;
  const trace::Declaration& declaration = model_.declarations[label - 1 - (unmatched ? count : 0)];
  if (!unmatched && declaration.kind == trace::EventKind::kUnknown) return "unknown event";
  const std::string& name = model_.NameOf(declaration);
  if (!unmatched) return name;
  return name.empty() ? "unmatched pop" : "unmatched end of " + name;
}

const trace::Declaration* WindowEncoder::PlacedDeclaration(uint32_t label) const {
  const size_t count = model_.declarations.size();
  if (label == kLifeTimeLabel || label > 2 * count) return nullptr;
  const trace::Declaration& declaration = model_.declarations[(label - 1) % count];
  return declaration.line != 0 ? &declaration : nullptr;
}

void WindowEncoder::InternNames(std::span<const Edge> window) {
  for (uint32_t label : used_) iids_[label] = 0;
  used_.clear();
  used_arguments_.clear();
  used_categories_.clear();
  uint32_t before = kNoRow;
  for (const Edge& edge : window) {
    if (edge.declaration != before && edge.declaration != kNoRow) {
      before = edge.declaration;
      for (const uint32_t number : arguments_[before]) {
        if (number != 0) used_arguments_.insert(number);
      }
      const trace::StringId category = model_.declarations[before].category;
      if (category != 0) used_categories_.insert(category);
    }
    if (const uint32_t label = LabelOf(edge); label != kNoRow) Use(label);
    for (const LinkEnd& end : LinksAt(edge.event)) Use(LabelOfLink(end.link));
  }
}

void WindowEncoder::Use(uint32_t label) {
  if (iids_[label] != 0) return;
  used_.push_back(label);
  iids_[label] = static_cast<uint32_t>(used_.size());  // iids start at 1
}

std::span<const WindowEncoder::LinkEnd> WindowEncoder::LinksAt(uint32_t event) const {
  if (link_ends_.empty() || event == kNoRow) return {};
  const auto found = std::ranges::equal_range(link_ends_, event, {}, &LinkEnd::event);
  return {found.begin(), found.end()};
}

void WindowEncoder::WriteHead(uint64_t first_ns, uint32_t sequence, ProtoWriter& writer) {
  auto packet = writer.Message(Trace::kPacket);
  {
    auto snapshot = writer.Message(TracePacket::kClockSnapshot);
    WriteClock(writer, ClockSnapshot::kSequenceClock, first_ns, true);
    WriteClock(writer, ClockSnapshot::kBootTime, first_ns, false);
  }
  writer.Varint(TracePacket::kSequenceId, sequence);
  {
    auto interned = writer.Message(TracePacket::kInternedData);
    for (uint32_t i = 0; i < used_.size(); ++i) {
      WriteInterned(writer, InternedData::kEventNames, i + 1, LabelText(used_[i]));
    }
    // Numbered as the names are.
    for (uint32_t i = 0; i < used_.size(); ++i) {
      const trace::Declaration* const placed = PlacedDeclaration(used_[i]);
      if (placed == nullptr) continue;
      auto entry = writer.Message(InternedData::kSourceLocations);
      writer.Varint(InternedSourceLocation::kIid, i + 1);
      writer.Text(InternedSourceLocation::kFileName, model_.String(placed->file));
      writer.Varint(InternedSourceLocation::kLineNumber, placed->line);
    }
    for (uint32_t i = 0; i < std::size(kArgumentNames); ++i) {
      WriteInterned(writer, InternedData::kDebugAnnotationNames, i + 1, kArgumentNames[i]);
    }
    for (const uint32_t number : used_arguments_) {
      const std::string& name = names_[number - 1];
      const auto iid = static_cast<uint32_t>(std::size(kArgumentNames)) + 2 * number - 1;
      WriteInterned(writer, InternedData::kDebugAnnotationNames, iid, name);
      WriteInterned(writer, InternedData::kDebugAnnotationNames, iid + 1, "end_" + name);
    }
    for (const trace::StringId category : used_categories_) {
      WriteInterned(writer, InternedData::kEventCategories, categories_.at(category) + 1,
                    model_.String(category));
    }
  }
  writer.Varint(TracePacket::kSequenceFlags, TracePacket::kStateCleared | TracePacket::kNeedsState);
  {
    auto defaults = writer.Message(TracePacket::kDefaults);
    writer.Varint(TracePacketDefaults::kTimestampClockId, ClockSnapshot::kSequenceClock);
  }
  writer.Varint(TracePacket::kFirstPacketOnSequence, 1);
}

void WindowEncoder::WriteWarpBegin(const Edge& edge, uint64_t delta_ns, uint32_t sequence,
                                   ProtoWriter& writer) {
  const trace::Warps& warps = model_.warps;
  const uint32_t warp = edge.warp;
  auto packet = writer.Message(Trace::kPacket);
  writer.Varint(TracePacket::kTimestamp, delta_ns);
  writer.Varint(TracePacket::kSequenceId, sequence);
  {
    auto event = writer.Message(TracePacket::kTrackEvent);
    if ((warps.flags[warp] & trace::kWarpOrphan) == 0) {
      WriteArgument(
          writer, kCta,
          fmt::format("({}, {}, {})", warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]));
    }
    if (warps.index[warp] != kNoRow) WriteArgument(writer, kWarp, warps.index[warp]);
    WriteArgument(writer, kSm, warps.sm[warp]);
    if (warps.slot[warp] != trace::kNoSlot) WriteArgument(writer, kSlot, warps.slot[warp]);
    WriteArgument(writer, kCycles, warps.end_cycles[warp] - warps.begin_cycles[warp]);
    if (warps.flags[warp] != 0) WriteArgument(writer, kState, WarpState(warps.flags[warp]));
    writer.Varint(TrackEvent::kType, TrackEvent::kSliceBegin);
    writer.Varint(TrackEvent::kNameIid, iids_[kLifeTimeLabel]);
    writer.Varint(TrackEvent::kTrackUuid, edge.track);
  }
  writer.Varint(TracePacket::kSequenceFlags, TracePacket::kNeedsState);
}

// One id for each dependency: viewers follow whole chains of ids.
bool WindowEncoder::WriteLarge(const Edge& edge, uint64_t delta_ns, uint32_t sequence,
                               ProtoWriter& writer) {
  if (edge.event == kNoRow) return false;
  const trace::Flows& flows = model_.flows;
  const auto from = [&](uint32_t row) { return flows.from[row]; };
  const auto out = std::ranges::equal_range(flows_by_source_, edge.event, {}, from);
  const auto in = std::ranges::lower_bound(flows.to, edge.event);
  const bool has_come = in != flows.to.end() && *in == edge.event;
  const auto [first_value, last_value] = model_.values.Of(edge.event);
  if (out.empty() && !has_come && first_value == last_value) return false;
  auto packet = writer.Message(Trace::kPacket);
  writer.Varint(TracePacket::kTimestamp, delta_ns);
  writer.Varint(TracePacket::kSequenceId, sequence);
  {
    auto event = writer.Message(TracePacket::kTrackEvent);
    writer.Commit(PutEvent(writer.Reserve(256), edge, first_value, last_value));
    // Numbers of flows are 1 and more.
    for (const uint32_t row : out) writer.Fixed64(TrackEvent::kFlowIds, uint64_t{row} + 1);
    if (has_come) {
      writer.Fixed64(TrackEvent::kTerminatingFlowIds,
                     static_cast<uint64_t>(in - flows.to.begin()) + 1);
    }
  }
  writer.Varint(TracePacket::kSequenceFlags, TracePacket::kNeedsState);
  return true;
}

void WindowEncoder::WriteLinks(const Edge& edge, uint32_t sequence, ProtoWriter& writer) {
  for (const LinkEnd& end : LinksAt(edge.event)) {
    auto packet = writer.Message(Trace::kPacket);
    writer.Varint(TracePacket::kTimestamp, 0);  // after the event
    writer.Varint(TracePacket::kSequenceId, sequence);
    {
      auto event = writer.Message(TracePacket::kTrackEvent);
      writer.Varint(TrackEvent::kType, TrackEvent::kInstant);
      writer.Varint(TrackEvent::kNameIid, iids_[LabelOfLink(end.link)]);
      writer.Varint(TrackEvent::kTrackUuid, tracks_.Marks(edge.warp));
      // Behind the numbers of the model's flows.
      writer.Fixed64(end.is_target ? TrackEvent::kTerminatingFlowIds : TrackEvent::kFlowIds,
                     uint64_t{model_.flows.size()} + end.link + 1);
    }
    writer.Varint(TracePacket::kSequenceFlags, TracePacket::kNeedsState);
  }
}

uint8_t* WindowEncoder::PutValue(uint8_t* out, const Edge& edge, uint8_t index,
                                 uint64_t value) const {
  const std::vector<trace::Value>& declared = model_.declarations[edge.declaration].more;
  // Else the payload, which PutEvent() has.
  if (index >= std::min<size_t>(declared.size(), ring::kMostValues - 1)) return out;
  const bool at_end = edge.kind == EdgeKind::kRangeEnd;
  return PutPayload(out, ArgumentOf(edge.declaration, index + size_t{1}, at_end),
                    declared[index].type, value);
}

uint8_t* WindowEncoder::PutEvent(uint8_t* out, const Edge& edge, size_t first_value,
                                 size_t last_value) const {
  const trace::Ranges& ranges = model_.ranges;
  uint8_t type = TrackEvent::kSliceEnd;
  if (edge.kind == EdgeKind::kRangeBegin) type = TrackEvent::kSliceBegin;
  if (edge.kind == EdgeKind::kMark || edge.kind == EdgeKind::kUnmatchedEnd) {
    type = TrackEvent::kInstant;
  }

  if (edge.event != kNoRow) {
    const trace::Declaration& declaration = model_.declarations[edge.declaration];
    // Of one that nobody declared it is the id.
    const trace::PayloadType reads = declaration.kind == trace::EventKind::kUnknown
                                         ? trace::PayloadType::kU64
                                         : declaration.payload;
    if (model_.HasPayload(edge.event)) {
      out = PutPayload(out, ArgumentOf(edge.declaration, 0, edge.kind == EdgeKind::kRangeEnd),
                       reads, edge.payload);
    }
    for (size_t i = first_value; i < last_value; ++i) {
      out = PutValue(out, edge, model_.values.index[i], model_.values.value[i]);
    }
  }
  if (range_cycles_ && edge.kind == EdgeKind::kRangeBegin) {
    out = PutArgument(out, kCycles, [&](uint8_t* at) {
      return PutVarintField(at, DebugAnnotation::kUintValue,
                            ranges.end_cycles[edge.range] - ranges.begin_cycles[edge.range]);
    });
  }
  if (edge.kind == EdgeKind::kRangeEnd && edge.event == kNoRow) {
    out = PutArgument(out, kUnclosed,
                      [](uint8_t* at) { return PutSmall(at, DebugAnnotation::kBoolValue, 1); });
  }
  out = PutSmall(out, TrackEvent::kType, type);
  if (const uint32_t label = LabelOf(edge); label != kNoRow) {
    out = PutVarintField(out, TrackEvent::kNameIid, iids_[label]);
    if (edge.kind != EdgeKind::kWarpBegin) {
      const auto category = categories_.find(model_.declarations[edge.declaration].category);
      if (category != categories_.end()) {
        out = PutVarintField(out, TrackEvent::kCategoryIids, category->second + 1);
      }
    }
    if (PlacedDeclaration(label) != nullptr) {
      out = PutVarintField(out, TrackEvent::kSourceLocationIid, iids_[label]);
    }
  }
  return PutVarintField(out, TrackEvent::kTrackUuid, edge.track);
}

void WindowEncoder::Encode(std::span<const Edge> window, uint32_t sequence, ProtoWriter& writer) {
  InternNames(window);
  uint64_t ns = window.front().ns;
  WriteHead(ns, sequence, writer);

  for (const Edge& edge : window) {
    const uint64_t delta = edge.ns - ns;
    ns = edge.ns;
    WriteEdge(edge, delta, sequence, writer);
    if (!link_ends_.empty()) WriteLinks(edge, sequence, writer);
  }
}

void WindowEncoder::WriteEdge(const Edge& edge, uint64_t delta_ns, uint32_t sequence,
                              ProtoWriter& writer) {
  if (edge.kind == EdgeKind::kWarpBegin) return WriteWarpBegin(edge, delta_ns, sequence, writer);
  if (has_large_ && WriteLarge(edge, delta_ns, sequence, writer)) return;
  // Everything below 128 bytes, so that both lengths are one byte, patched in at the end.
  uint8_t* out = writer.Reserve(128);
  out = PutTag(out, Trace::kPacket);
  uint8_t* const packet_length = out++;
  out = PutVarintField(out, TracePacket::kTimestamp, delta_ns);
  out = PutVarintField(out, TracePacket::kSequenceId, sequence);
  out = PutTag(out, TracePacket::kTrackEvent);
  uint8_t* const event_length = out++;
  out = PutEvent(out, edge);
  *event_length = static_cast<uint8_t>(out - event_length - 1);
  out = PutSmall(out, TracePacket::kSequenceFlags, TracePacket::kNeedsState);
  *packet_length = static_cast<uint8_t>(out - packet_length - 1);
  writer.Commit(out);
}

}  // namespace iket::exporter
