#include "foreign/warp_buffer.h"

#include <algorithm>

#include "capture/content.h"

namespace iket::foreign {
namespace {

constexpr uint32_t kHeaderBytes = 16;
constexpr uint32_t kEventMask = 31;  // of a NativeDump: the timer's steps are of 32 ns
constexpr uint32_t kEnd = 0;
// The timer's low word is behind the last one by less: it went back; by more: it went on.
constexpr uint32_t kBackward = 1u << 24;

uint8_t PayloadBytes(uint8_t type) {
  switch (static_cast<capture::PayloadType>(type)) {
    case capture::PayloadType::kNone:
      return 0;
    case capture::PayloadType::kI64:
    case capture::PayloadType::kF64:
    case capture::PayloadType::kPointer:
    case capture::PayloadType::kU64:
      return 8;
    default:
      return 4;
  }
}

// Puts low words together to times.
class Timer {
 public:
  Timer(uint64_t begin_ns, uint32_t& backward) : now_(begin_ns), backward_(backward) {}

  uint64_t At(uint32_t low) {
    const uint32_t step = low - static_cast<uint32_t>(now_);
    if (step > ~uint32_t{0} - kBackward) {
      ++backward_;
    } else {
      now_ += step;
    }
    return now_;
  }
  uint64_t now() const { return now_; }

 private:
  uint64_t now_;
  uint32_t& backward_;
};

}  // namespace

RecordForms::RecordForms(const RawContext& module, uint32_t max_payload_bytes)
    : extended_(std::ranges::any_of(module.events, [](const RawEvent& event) {
        return event.method == Method::kExtendedNativeDump;
      })) {
  shortest_.bytes = extended_ || max_payload_bytes > 4 ? 8 : 4;
  for (const RawEvent& event : module.events) {
    if (event.id >= forms_.size()) forms_.resize(event.id + 1, shortest_);
    forms_[event.id] = FormOf(PayloadBytes(event.payload));
  }
}

RecordForms::Form RecordForms::FormOf(uint8_t payload) const {
  Form form = shortest_;
  form.known = true;
  form.payload_bytes = payload;
  if (payload == 0) return form;
  form.payload_at = extended_ || payload == 8 ? 8 : 4;
  form.bytes = form.payload_at == 8 ? 16 : 8;
  return form;
}

std::optional<WarpHeader> ReadWarpHeader(UntrustedBytes buffer) {
  const auto written = buffer.Read<uint32_t>(0);
  const auto place = buffer.Read<uint16_t>(6);
  const auto begin_ns = buffer.Read<uint64_t>(8);
  if (!begin_ns || *written == 0) return std::nullopt;
  return WarpHeader{*written, static_cast<uint16_t>(*place >> 4), *begin_ns};
}

std::optional<WarpBuffer> ReadWarpBuffer(UntrustedBytes buffer, const RecordForms& forms,
                                         std::vector<WarpRecord>& records) {
  const auto header = ReadWarpHeader(buffer);
  if (!header) return std::nullopt;
  WarpBuffer warp{.sm = header->sm, .begin_ns = header->begin_ns, .end_ns = header->begin_ns};
  const uint64_t kept = std::min<uint64_t>(header->written, buffer.size());
  warp.lost_bytes = header->written - kept;
  warp.malformed = !header->IsValid();
  if (warp.malformed) return warp;

  Timer timer(warp.begin_ns, warp.backward);
  uint32_t ends = 0;
  bool at_end = false;
  uint64_t at = kHeaderBytes;
  while (at + 4 <= kept) {
    const uint32_t word = *buffer.Read<uint32_t>(at);
    const bool is_last = at + 4 == kept;  // the end alone is so short, in every kernel
    uint32_t event = word & kEventMask;
    uint32_t time = word & ~kEventMask;
    if (forms.extended()) {
      event = buffer.Read<uint32_t>(at + 4).value_or(kEnd);
      if (is_last) event = kEnd;
      time = word;
    }
    if (event == kEnd) {
      // Zero may be the time of the end, once in four seconds; elsewhere it is a hole.
      if (word != 0 || (is_last && static_cast<uint32_t>(timer.now()) > 0u - kBackward)) {
        timer.At(time);
        ++ends;
        at_end = true;
      }
      at += is_last ? 4 : forms.shortest_bytes();
      continue;
    }
    const RecordForms::Form form = forms.Of(event);
    if (at + form.bytes > kept) break;  // cut by the end of the buffer
    if (!form.known) ++warp.unknown;
    WarpRecord record{.ns = timer.At(time), .event = event};
    if (form.payload_bytes == 4) record.payload = *buffer.Read<uint32_t>(at + form.payload_at);
    if (form.payload_bytes == 8) record.payload = *buffer.Read<uint64_t>(at + form.payload_at);
    records.push_back(record);
    at_end = false;
    at += form.bytes;
  }
  // Where others follow it was the end of some lanes alone.
  warp.has_end = at_end && warp.lost_bytes == 0;
  warp.early_exits = ends - (warp.has_end ? 1 : 0);
  warp.end_ns = timer.now();
  return warp;
}

}  // namespace iket::foreign
