#include "export/pftrace_check.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "export/perfetto_fields.h"
#include "export/proto_reader.h"
#include "export/tracks.h"

namespace iket::exporter {
namespace {

using perfetto::ClockSnapshot;
using perfetto::DebugAnnotation;
using perfetto::InternedData;
using perfetto::InternedName;
using perfetto::Trace;
using perfetto::TracePacket;
using perfetto::TracePacketDefaults;
using perfetto::TrackDescriptor;
using perfetto::TrackEvent;

// Fields that we only read.
constexpr uint32_t kTimestampClockId = 58;    // of TracePacket
constexpr uint32_t kTrackEventDefaults = 11;  // of TracePacketDefaults
constexpr uint32_t kDefaultTrackUuid = 11;    // of TrackEventDefaults
constexpr uint32_t kStageHwQueueIid = 13, kStageStageIid = 14, kStageKernelIid = 19;

constexpr uint8_t kPacketTag = Trace::kPacket << 3 | 2;
constexpr size_t kMostHeadBytes = 1 + 10;

}  // namespace

struct PftraceCheck::Packet {
  std::optional<uint64_t> timestamp;
  std::optional<uint64_t> clock;
  uint64_t sequence = 0;
  uint64_t flags = 0;
  std::optional<UntrustedBytes> clocks, interned, defaults, descriptor, event, stage;
};

void PftraceCheck::Add(std::string_view kind, std::string text) {
  faults_.Add(offset_, kind, std::move(text));
}

void PftraceCheck::Break(std::string_view kind, std::string text) {
  Add(kind, std::move(text));
  broken_ = true;
}

void PftraceCheck::Feed(std::span<const std::byte> untrusted) {
  if (broken_) return;
  if (pending_.empty()) {
    const size_t taken = TakePackets(UntrustedBytes(untrusted));
    pending_.assign(untrusted.begin() + static_cast<ptrdiff_t>(taken), untrusted.end());
    return;
  }
  pending_.insert(pending_.end(), untrusted.begin(), untrusted.end());
  const size_t taken = TakePackets(UntrustedBytes(pending_));
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(taken));
}

size_t PftraceCheck::TakePackets(UntrustedBytes bytes) {
  uint64_t at = 0;
  while (at < bytes.size() && !broken_) {
    offset_ = base_ + at;
    if (bytes.Read<uint8_t>(at) != kPacketTag) {
      Break("packet", "no packet begins here; what follows cannot be read");
      break;
    }
    uint64_t length = 0;
    uint64_t end = at + 1;
    std::optional<uint8_t> byte;
    for (int shift = 0; (byte = bytes.Read<uint8_t>(end)); shift += 7) {
      ++end;
      if (shift < 63) length |= static_cast<uint64_t>(*byte & 0x7f) << shift;
      if (*byte < 0x80 || shift > 63) break;
    }
    if (end - at > kMostHeadBytes || length > kMostPacketBytes) {
      Break("packet", "a packet of a length that cannot be right; what follows cannot be read");
      break;
    }
    const auto packet = byte ? bytes.Slice(end, length) : std::nullopt;
    if (!packet) break;  // it goes on in the next block
    Take(*packet);
    at = end + length;
  }
  base_ += at;
  return at;
}

void PftraceCheck::Finish() {
  offset_ = base_;
  if (!broken_ && !pending_.empty()) {
    Add("cut", fmt::format("the last packet is cut after {} bytes", pending_.size()));
  } else if (packets_ == 0 && !broken_) {
    Add("empty", "no packet");
  }
  for (const auto& [uuid, offset] : parents_) {
    const auto track = tracks_.find(uuid);
    if (track != tracks_.end() && track->second.declared) continue;
    faults_.Add(offset, "track",
                fmt::format("track {} is somebody's parent, and is not declared", uuid));
  }
  for (const auto& [uuid, track] : tracks_) {
    if (track.open == 0) continue;
    faults_.Add(track.begun_offset, "slice",
                track.open == 1 ? fmt::format("a slice of track {} never ends", uuid)
                                : fmt::format("{} slices of track {} never end", track.open, uuid));
  }
}

Counts PftraceCheck::counts() const {
  const auto declared =
      std::ranges::count_if(tracks_, [](const auto& entry) { return entry.second.declared; });
  return {{"packet", packets_}, {"track", static_cast<uint64_t>(declared)}, {"event", events_}};
}

bool PftraceCheck::Collect(UntrustedBytes bytes, Packet& packet) {
  ProtoReader reader(bytes);
  while (const auto field = reader.Next()) {
    const auto nested = [&](std::optional<UntrustedBytes>& into) {
      if (field->is_bytes) into = field->bytes;
    };
    switch (field->number) {
      case TracePacket::kTimestamp:
        packet.timestamp = field->value;
        break;
      case kTimestampClockId:
        packet.clock = field->value;
        break;
      case TracePacket::kSequenceId:
        packet.sequence = field->value;
        break;
      case TracePacket::kSequenceFlags:
        packet.flags = field->value;
        break;
      case TracePacket::kClockSnapshot:
        nested(packet.clocks);
        break;
      case TracePacket::kInternedData:
        nested(packet.interned);
        break;
      case TracePacket::kDefaults:
        nested(packet.defaults);
        break;
      case TracePacket::kTrackDescriptor:
        nested(packet.descriptor);
        break;
      case TracePacket::kTrackEvent:
        nested(packet.event);
        break;
      case TracePacket::kGpuRenderStageEvent:
        nested(packet.stage);
        break;
      default:
        break;
    }
  }
  return !reader.failed();
}

void PftraceCheck::Take(UntrustedBytes bytes) {
  ++packets_;
  Packet packet;
  bool whole = Collect(bytes, packet);
  Sequence& sequence = sequences_[packet.sequence];
  if ((packet.flags & TracePacket::kStateCleared) != 0) {
    sequence = Sequence{};
    sequence.has_state = true;
  }
  if ((packet.flags & TracePacket::kNeedsState) != 0 && !sequence.has_state) {
    Add("sequence", fmt::format("a packet of sequence {} needs a state that none before it gave",
                                packet.sequence));
    sequence.has_state = true;  // once is enough
  }
  if (packet.clocks) whole &= TakeClocks(*packet.clocks, sequence);
  if (packet.interned) whole &= TakeInterned(*packet.interned, sequence);
  if (packet.defaults) whole &= TakeDefaults(*packet.defaults, sequence);
  if (packet.descriptor) whole &= TakeDescriptor(*packet.descriptor);
  if (packet.event) whole &= TakeEvent(packet, sequence);
  if (packet.stage) whole &= TakeRenderStage(*packet.stage, sequence);
  if (!whole) Add("packet", "a packet in which a field is not whole");
}

bool PftraceCheck::TakeClocks(UntrustedBytes snapshot, Sequence& sequence) {
  ProtoReader reader(snapshot);
  bool whole = true;
  while (const auto field = reader.Next()) {
    if (field->number != ClockSnapshot::kClocks) continue;
    ProtoReader clock(field->bytes);
    uint64_t id = 0;
    Clock value;
    while (const auto part = clock.Next()) {
      if (part->number == perfetto::Clock::kClockId) id = part->value;
      if (part->number == perfetto::Clock::kTimestamp) value.now = part->value;
      if (part->number == perfetto::Clock::kIsIncremental) value.incremental = part->value != 0;
    }
    whole &= !clock.failed();
    if (id >= ClockSnapshot::kSequenceClock) sequence.clocks[id] = value;
  }
  return whole && !reader.failed();
}

bool PftraceCheck::TakeInterned(UntrustedBytes interned, Sequence& sequence) {
  ProtoReader reader(interned);
  bool whole = true;
  while (const auto field = reader.Next()) {
    if (!field->is_bytes) continue;
    ProtoReader entry(field->bytes);
    // Every kind of entry begins with its number.
    while (const auto part = entry.Next()) {
      if (part->number == InternedName::kIid) sequence.interned[field->number].insert(part->value);
    }
    whole &= !entry.failed();
  }
  return whole && !reader.failed();
}

bool PftraceCheck::TakeDefaults(UntrustedBytes defaults, Sequence& sequence) {
  ProtoReader reader(defaults);
  while (const auto field = reader.Next()) {
    if (field->number == TracePacketDefaults::kTimestampClockId) {
      sequence.default_clock = field->value;
    } else if (field->number == kTrackEventDefaults) {
      ProtoReader event(field->bytes);
      while (const auto part = event.Next()) {
        if (part->number == kDefaultTrackUuid) sequence.default_track = part->value;
      }
    }
  }
  return !reader.failed();
}

bool PftraceCheck::TakeDescriptor(UntrustedBytes descriptor) {
  ProtoReader reader(descriptor);
  uint64_t uuid = 0;
  bool is_curve = false;
  while (const auto field = reader.Next()) {
    if (field->number == TrackDescriptor::kUuid) uuid = field->value;
    is_curve |= field->number == TrackDescriptor::kCounter;
    if (field->number == TrackDescriptor::kName && field->is_bytes) {
      simulated_ |=
          std::ranges::equal(field->bytes.span(), std::as_bytes(std::span(kSimulatedRoot)));
    }
    if (field->number == TrackDescriptor::kParentUuid) parents_.try_emplace(field->value, offset_);
  }
  tracks_[uuid].declared = true;
  tracks_[uuid].is_curve = is_curve;
  return !reader.failed();
}

void PftraceCheck::RequireInterned(const Sequence& sequence, uint32_t field, uint64_t iid,
                                   std::string_view what) {
  const auto entries = sequence.interned.find(field);
  if (entries != sequence.interned.end() && entries->second.contains(iid)) return;
  Add("name", fmt::format("{} {} was not interned before in its sequence", what, iid));
}

void PftraceCheck::CheckTime(const Packet& packet, Sequence& sequence, uint64_t uuid,
                             Track& track) {
  const uint64_t id = packet.clock.value_or(sequence.default_clock);
  const uint64_t said = packet.timestamp.value_or(0);
  uint64_t time = said;
  const bool of_sequence = id >= ClockSnapshot::kSequenceClock;
  const auto clock = sequence.clocks.find(id);
  if (of_sequence && clock == sequence.clocks.end()) {
    Add("time", fmt::format("clock {} of sequence {} was not set before", id, packet.sequence));
    sequence.clocks[id] = {};
    return;
  }
  if (of_sequence && clock->second.incremental) {
    uint64_t& now = clock->second.now;
    // A difference is a signed number on the wire.
    if (said >> 63 != 0 || said > std::numeric_limits<uint64_t>::max() - now) {
      Add("time", fmt::format("time runs backwards in sequence {}", packet.sequence));
      return;
    }
    time = now += said;
  }
  const std::pair at_clock(id, of_sequence ? packet.sequence : 0);
  if (track.clock == at_clock && time < track.time) {
    Add("time",
        fmt::format("time runs backwards on track {}: {} after {}", uuid, time, track.time));
  }
  track.clock = at_clock;
  track.time = time;
}

bool PftraceCheck::TakeEvent(const Packet& packet, Sequence& sequence) {
  ++events_;
  ProtoReader reader(*packet.event);
  uint64_t type = 0;
  uint64_t uuid = sequence.default_track;
  bool whole = true;
  bool has_value = false;
  while (const auto field = reader.Next()) {
    switch (field->number) {
      case TrackEvent::kType:
        type = field->value;
        break;
      case TrackEvent::kTrackUuid:
        uuid = field->value;
        break;
      case TrackEvent::kDoubleCounterValue:
        has_value = true;
        break;
      case TrackEvent::kNameIid:
        RequireInterned(sequence, InternedData::kEventNames, field->value, "the event name");
        break;
      case TrackEvent::kCategoryIids:
        RequireInterned(sequence, InternedData::kEventCategories, field->value, "the category");
        break;
      case TrackEvent::kSourceLocationIid:
        RequireInterned(sequence, InternedData::kSourceLocations, field->value,
                        "the place in the source");
        break;
      case TrackEvent::kDebugAnnotations: {
        ProtoReader annotation(field->bytes);
        while (const auto part = annotation.Next()) {
          if (part->number != DebugAnnotation::kNameIid) continue;
          RequireInterned(sequence, InternedData::kDebugAnnotationNames, part->value,
                          "the argument's name");
        }
        whole &= !annotation.failed();
        break;
      }
      default:
        break;
    }
  }
  Track& track = tracks_[uuid];
  CheckTime(packet, sequence, uuid, track);
  if (!track.declared && uuid != 0) {
    Add("track", fmt::format("an event on track {}, which is not declared", uuid));
    track.declared = true;  // once is enough
  }
  if (track.is_curve != (type == TrackEvent::kCounter) || track.is_curve != has_value) {
    Add("curve", track.is_curve
                     ? fmt::format("an event without a value on track {}, which is a curve", uuid)
                     : fmt::format("a value on track {}, which is no curve", uuid));
  }
  if (type == TrackEvent::kSliceBegin) {
    ++track.open;
    track.begun_offset = offset_;
  } else if (type == TrackEvent::kSliceEnd) {
    if (track.open == 0) {
      Add("slice", fmt::format("a slice of track {} ends that did not begin", uuid));
    } else {
      --track.open;
    }
  }
  return whole && !reader.failed();
}

bool PftraceCheck::TakeRenderStage(UntrustedBytes event, const Sequence& sequence) {
  ProtoReader reader(event);
  while (const auto field = reader.Next()) {
    switch (field->number) {
      case kStageHwQueueIid:
      case kStageStageIid:
        RequireInterned(sequence, InternedData::kGpuSpecifications, field->value, "the GPU stage");
        break;
      case kStageKernelIid:
        RequireInterned(sequence, InternedData::kComputeKernels, field->value, "the kernel");
        break;
      default:
        break;
    }
  }
  return !reader.failed();
}

}  // namespace iket::exporter
