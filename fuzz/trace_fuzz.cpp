// Rings of any bytes, decoded. The input is a count of rings, then for each of them its header, its
// position and its records, as far as the bytes go. What must hold: time never falls within a warp,
// ranges end after they begin, and every record is accounted for.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "capture/content.h"
#include "trace/decode.h"
#include "trace/statistics.h"

namespace {

using iket::capture::RingBlock;
using iket::capture::RingRow;
using iket::ring::Record;
using iket::trace::Model;

constexpr uint64_t kRingBytes = 1024;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  template <typename T>
  T Take() {
    T value{};
    const size_t bytes = size_ < sizeof(T) ? size_ : sizeof(T);
    if (bytes != 0) std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }
  size_t left() const { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
};

iket::capture::Capture Facts() {
  using Kind = iket::capture::EventKind;
  iket::capture::Capture facts;
  facts.devices.push_back({.index = 0, .sm_count = 2, .sm_clock_khz = 1'980'000});
  facts.contexts.push_back({.index = 0, .device = 0, .ring_bytes = kRingBytes, .sm_count = 2});
  facts.kernels.push_back({.index = 0, .state = iket::capture::KernelState::kPatched});
  facts.launches.push_back(
      {.sequence = 0, .kernel = 0, .context = 0, .grid = {4, 1, 1}, .block = {64, 1, 1}});
  uint32_t event = 1;
  for (Kind kind : {Kind::kMark, Kind::kPush, Kind::kPop, Kind::kRangeBegin, Kind::kRangeEnd}) {
    for (const char* name : {"a", "b"}) {
      facts.declarations.push_back({.image = 0, .event = event++, .kind = kind, .name = name});
    }
  }
  return facts;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const Model& model, uint64_t records) {
  Require(model.events.size() <= records && model.counters.records_kept <= records);
  Require(model.counters.records_written - model.counters.records_lost ==
          model.counters.records_kept);
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t first = model.warps.first_event[warp];
    for (uint32_t i = 1; i < model.warps.event_count[warp]; ++i) {
      Require(model.events.cycles[first + i - 1] <= model.events.cycles[first + i]);
    }
    Require(model.warps.begin_cycles[warp] <= model.warps.end_cycles[warp]);
    Require(model.warps.begin_ns[warp] <= model.warps.end_ns[warp]);
  }
  for (size_t i = 0; i < model.ranges.size(); ++i) {
    Require(model.ranges.begin_cycles[i] <= model.ranges.end_cycles[i]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const iket::capture::Capture kFacts = Facts();
  Input input(data, size);
  const size_t rings = input.Take<uint8_t>() % 4 + 1;
  RingBlock block;
  std::vector<std::vector<Record>> memory(rings);
  uint64_t records = 0;
  for (size_t i = 0; i < rings && input.left() != 0; ++i) {
    RingRow row;
    row.ring = static_cast<uint32_t>(i % 2 * iket::ring::kSlotsPerSm + i / 2);
    row.header = input.Take<iket::ring::RingHeader>();
    row.written = input.Take<uint64_t>();
    const size_t count = input.Take<uint16_t>() % 80;
    while (memory[i].size() < count && input.left() != 0) {
      memory[i].push_back(input.Take<Record>());
    }
    row.records = memory[i];
    row.first = row.written - row.records.size() * iket::ring::kRecordBytes;
    records += row.records.size();
    block.rows.push_back(row);
  }
  iket::trace::Decoder decoder(kFacts);
  decoder.Add(block);
  const iket::Result<Model> model = decoder.Finish();
  Require(model.has_value());
  Check(*model, records);
  iket::trace::Summarize(*model, {.all_launches = true});
  return 0;
}
