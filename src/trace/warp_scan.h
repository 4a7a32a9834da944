// warp_scan.h: cuts a ring's stream of records into warps.
//
// What comes out is raw: a WarpSpan for each warp, and its events appended to Model::events with
// `cycles` counted from the span's first record (modulo 2^64: a step back of the clock is kept as
// one). clock_alignment.h then puts spans on their SM's axis.
//
// The rules are those of docs/design/recording.md, section 5. A begin opens a warp; it lasts until
// the next begin, which says when it ended, or to the end of the stream, where the ring's header
// says it. Any bytes are accepted, every record is counted for what it is.
//
// Cost: one pass; an event is one table look-up and three appended numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/reader.h"
#include "ring/record.h"
#include "trace/counters.h"
#include "trace/declarations.h"
#include "trace/model.h"
#include "trace/ring_stream.h"

namespace iket::trace {

// One warp, as far as a ring holds it. Clocks and timers are as recorded; offsets count cycles from
// the clock of its first record.
struct WarpSpan {
  uint32_t ring = 0;                // row of Model::rings
  uint32_t kernel_number = kNoRow;  // kNoRow if its begin is not kept
  ring::Identity identity = {};
  bool has_identity = false;
  uint8_t flags = 0;  // WarpFlag

  bool has_begin = false;  // at offset 0
  uint32_t first_clock = 0;
  uint32_t begin_timer_low = 0;
  uint32_t previous_end = 0;  // what its begin says of the warp before it

  bool has_end = false;
  uint32_t end_clock = 0;
  int64_t end_offset = 0;      // taken as less than a wrap after its newest record
  bool has_end_timer = false;  // the ring's last warp
  bool header_end_known =
      false;  // still running; end_clock and end_timer_ns are of the warp before it
  uint64_t end_timer_ns = 0;
  int64_t read_host_ns = 0;  // as in the stretch that has its first record

  int64_t last_offset = 0;   // of its newest record
  uint32_t back_steps = 0;   // how often the clock stepped back within it
  uint32_t first_event = 0;  // row of Model::events
  uint32_t event_count = 0;

  // read_host_ns on the GPU's timer: it had begun by then; 0 unknown.
  uint64_t begun_by_timer_ns = 0;

  // Made by clock_alignment.h.
  uint64_t begin_timer_ns = 0;
  int64_t base_cycles = 0;    // where offset 0 lies on the SM's axis
  bool placed = false;        // base_cycles is known
  uint32_t hidden_wraps = 0;  // of %clock, that only begin and end together reveal

  uint32_t last_clock() const { return first_clock + static_cast<uint32_t>(last_offset); }
};

class WarpScanner {
 public:
  // All must outlive the scanner. It fills the model's events (without the column `warp`), values,
  // holes and counters.
  WarpScanner(const capture::Capture& facts, const Declarations& declarations, Model& model,
              Column<WarpSpan>& spans);

  // Appends the warps of one ring, oldest first. True if the ring contradicts itself.
  bool Scan(const RingStream& stream, uint32_t ring_row);

 private:
  // A record behind that of an event with several values.
  struct Part {
    size_t event;   // row of Model::events
    uint8_t index;  // 1 and more
    uint32_t low, high;
  };

  void PassLoss(const Stretch& behind);
  void ScanStretch(std::span<const ring::Record> records);
  size_t OnRecord(std::span<const ring::Record> records, size_t at, size_t events);
  size_t OnBegin(std::span<const ring::Record> records, size_t at, size_t events);
  void OnMore(const ring::Record& record, size_t events);
  void ResizeEvents(size_t count);
  // `events`: how many there are.
  void Open(uint32_t clock, size_t events);
  void Close(size_t events);
  void ViewAsKernel();
  void TakeValues();
  void TakeHoles();
  std::span<const Part> AppendValues(size_t event, std::span<const Part> parts);
  void SetEnd(uint32_t clock);
  void Finish(const RingStream& stream);

  const capture::Capture& facts_;
  const Declarations& declarations_;
  Events& events_;
  Values& values_;
  Column<uint32_t>& holes_;  // Model::holes
  Column<WarpSpan>& spans_;
  Counters& counters_;

  // The open warp.
  WarpSpan span_;
  bool open_ = false;
  uint32_t clock_ = 0;  // of its newest record
  int64_t offset_ = 0;

  uint32_t ring_row_ = 0;
  bool after_loss_ = false;  // the next record is the first one after lost ones
  bool suspect_ = false;
  bool identity_due_ = false;  // its begin was the last record of a stretch
  ring::Record writer_ = {};   // Stretch::writer, behind a loss
  int64_t read_host_ns_ = 0;   // of the stretch

  // Of the open warp, whose events are the last of the model's.
  std::vector<size_t> pending_holes_;  // as Model::holes
  std::vector<Part> parts_;
  Declarations::View view_;          // of its image
  uint32_t viewed_kernel_ = kNoRow;  // whose that is
};

}  // namespace iket::trace
