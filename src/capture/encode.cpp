#include "capture/encode.h"

#include <algorithm>

namespace iket::capture {
namespace {

// Appends to a payload whose size is known from the start.
class PayloadBuilder {
 public:
  explicit PayloadBuilder(size_t bytes) : payload_(bytes) {}

  void Put(const void* data, size_t bytes) {
    if (bytes == 0) return;
    std::memcpy(payload_.data() + at_, data, bytes);
    at_ += bytes;
  }
  template <typename T>
  void Put(const T& value) {
    Put(&value, sizeof(value));
  }
  std::byte* at() { return payload_.data() + at_; }
  void Advance(size_t bytes) { at_ += bytes; }
  std::vector<std::byte> Take() { return std::move(payload_); }

 private:
  std::vector<std::byte> payload_;
  size_t at_ = 0;
};

}  // namespace

uint32_t StringTable::Intern(std::string_view text) {
  text = text.substr(0, wire::kMaxStringBytes);
  if (text.empty()) return 0;
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  const auto [entry, added] = ids_.emplace(text, next_id_++);
  pending_.push_back(&entry->first);
  return entry->second;
}

std::vector<std::byte> StringTable::TakePending(size_t limit) {
  size_t count = 0;
  size_t text_bytes = 0;
  while (count < pending_.size()) {
    const size_t bytes = sizeof(wire::StringRow) + pending_[count]->size();
    if (count > 0 && count * sizeof(wire::StringRow) + text_bytes + bytes > limit) break;
    text_bytes += pending_[count]->size();
    ++count;
  }
  const wire::StringsHead head{.table = {.head_bytes = sizeof(head),
                                         .row_count = static_cast<uint32_t>(count),
                                         .row_bytes = sizeof(wire::StringRow),
                                         .reserved = 0},
                               .first_id = next_id_ - static_cast<uint32_t>(pending_.size()),
                               .reserved = 0};
  PayloadBuilder payload(sizeof(head) + count * sizeof(wire::StringRow) + text_bytes);
  payload.Put(head);
  for (size_t i = 0; i < count; ++i) {
    payload.Put(
        wire::StringRow{.length = static_cast<uint32_t>(pending_[i]->size()), .reserved = 0});
  }
  for (size_t i = 0; i < count; ++i) payload.Put(pending_[i]->data(), pending_[i]->size());
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count));
  return payload.Take();
}

std::vector<std::byte> EncodeDevice(const Device& device, StringTable& strings) {
  using Head = wire::RowOf<Device>;
  using Row = wire::RowOf<SmPlace>;
  const wire::TableHeader header{.head_bytes = sizeof(header) + Head::kBytes,
                                 .row_count = static_cast<uint32_t>(device.topology.size()),
                                 .row_bytes = Row::kBytes,
                                 .reserved = 0};
  PayloadBuilder payload(header.head_bytes + device.topology.size() * Row::kBytes);
  payload.Put(header);
  RowEncoder head(wire::FieldCursor<std::byte>(payload.at()), strings);
  Head::Describe(head, device);
  payload.Advance(Head::kBytes);
  for (const SmPlace& place : device.topology) {
    RowEncoder row(wire::FieldCursor<std::byte>(payload.at()), strings);
    Row::Describe(row, place);
    payload.Advance(Row::kBytes);
  }
  return payload.Take();
}

std::vector<std::byte> EncodeRingTable(const RingMoment& moment, bool last_of_moment,
                                       std::span<const RingPiece> pieces) {
  const wire::RingHead head{.table = {.head_bytes = sizeof(head),
                                      .row_count = static_cast<uint32_t>(pieces.size()),
                                      .row_bytes = sizeof(wire::RingEntry),
                                      .reserved = 0},
                            .context = moment.context,
                            .flags = (moment.live ? wire::kRingLive : 0u) |
                                     (moment.settled ? wire::kRingSettled : 0u) |
                                     (last_of_moment ? wire::kRingLastOfMoment : 0u),
                            .moment = moment.number,
                            .begin_ns = moment.begin_ns,
                            .reserved = 0};
  PayloadBuilder payload(sizeof(head) + pieces.size() * sizeof(wire::RingEntry));
  payload.Put(head);
  for (const RingPiece& piece : pieces) payload.Put(piece.entry);
  return payload.Take();
}

}  // namespace iket::capture
