// synthetic.h: a GPU of paper that writes rings as docs/design/recording.md says.
//
// For tests, benchmarks and sample captures: a story is told in calls (this warp begins here, marks
// that, time passes, it ends) and out comes the capture that a real run of it would leave, byte for
// byte: laps, headers, cursors, running warps. It keeps a log of the truth beside it. Nothing of
// the product uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capture/reader.h"
#include "capture/writer.h"
#include "ring/layout.h"

namespace iket::trace {

struct SyntheticShape {
  uint32_t sms = 4;
  uint32_t ring_bytes = 4096;
  double ghz = 1.98;
  uint64_t timer_origin_ns = 1'780'000'000'000'000'000;
  uint32_t timer_step_ns = 32;
  bool keep_log = true;
};

class SyntheticGpu {
 public:
  using WarpId = uint32_t;  // counts the warps that began

  // What was truly written: one entry a record, in the order of its ring.
  struct Truth {
    WarpId warp = 0;
    ring::RecordKind kind = ring::RecordKind::kUnknown;
    uint32_t id = 0;       // of an event
    uint64_t payload = 0;  // as given
    uint64_t cycles = 0;   // of its SM, never wrapped
    double ns = 0;         // since timer_origin_ns
  };
  struct Warp {
    uint32_t ring = 0;
    uint32_t kernel = 0;
    ring::Identity identity;
    uint32_t index = 0;  // in its CTA
    bool ended = false;
    uint64_t end_cycles = 0;  // of its SM, at its last exit
  };

  explicit SyntheticGpu(SyntheticShape shape = {});

  // --- What the host does ---
  uint32_t AddKernel(std::string_view name);  // patched; returns its number
  // Returns the event id.
  uint32_t Declare(capture::EventKind kind, std::string_view name,
                   capture::PayloadType payload = capture::PayloadType::kNone);
  // Logs a launch and returns its %gridid.
  uint32_t Launch(uint32_t kernel, capture::Dim3 grid, capture::Dim3 block);
  // A launch that nobody logs.
  uint32_t LaunchUnlogged(uint32_t kernel);

  // --- What the GPU does ---
  void Pass(double ns);                          // time, on all SMs
  void SetFrequency(double ghz) { ghz_ = ghz; }  // from now on
  void SetClock(uint32_t sm, uint64_t cycles);   // what the SM's clock shows now
  void SetDrift(uint32_t sm, double share);      // its clock runs faster by this share
  WarpId Begin(uint32_t grid_id, uint32_t cta, uint32_t index, uint32_t sm, uint32_t slot);
  void Event(WarpId warp, uint32_t id, uint64_t payload = 0);
  // What an event had no room for: that of `clock`, or of now.
  void More(WarpId warp, uint32_t index, uint64_t payload);
  void More(WarpId warp, uint32_t index, uint64_t payload, uint32_t clock);
  void Exit(WarpId warp, bool last = true);  // of all its lanes, or of some

  // --- What is read ---
  const capture::Capture& facts() const { return facts_; }
  capture::Capture& facts() { return facts_; }
  // Rows of all rings that were ever used. They own nothing: call again after anything else.
  capture::RingBlock Read();
  // All of it into a capture file.
  Result<void> Write(capture::Writer& writer);

  // --- The truth ---
  const std::vector<Warp>& warps() const { return warps_; }
  uint32_t ring_count() const { return static_cast<uint32_t>(rings_.size()); }
  const std::vector<Truth>& Log(uint32_t ring) const { return rings_[ring].log; }
  uint32_t records_per_ring() const { return shape_.ring_bytes / ring::kRecordBytes; }
  double now_ns() const { return now_ns_; }  // also by the host's clock
  uint64_t timer_ns() const { return Timer(); }
  uint64_t Cycles(uint32_t sm) const { return static_cast<uint64_t>(sms_[sm].cycles); }
  std::vector<ring::Record>& Memory(uint32_t ring) { return rings_[ring].records; }
  ring::RingHeader& Header(uint32_t ring) { return rings_[ring].header; }

 private:
  static constexpr uint32_t kFirstGridId = 7;

  struct Ring {
    std::vector<ring::Record> records;  // empty: never used
    ring::RingHeader header = {};
    uint64_t written = 0;  // bytes, what UR2 would be without its wrap
    uint64_t cursor = 0;   // the same when the last warp ended
    bool running = false;
    std::vector<ring::Record> rotated;  // what Read gives
    std::vector<Truth> log;
  };
  struct Sm {
    double cycles = 0;
    double drift = 0;
  };

  uint64_t Timer() const;
  void Store(WarpId warp, const ring::Record& record, const Truth& truth);

  uint32_t SmOf(uint32_t ring) const { return ring / ring::kSlotsPerSm; }

  SyntheticShape shape_;
  double ghz_;
  double now_ns_ = 1000;
  std::vector<Sm> sms_;
  std::vector<Ring> rings_;
  std::vector<Warp> warps_;
  capture::Capture facts_;
  std::vector<uint32_t> kernel_of_grid_;  // by %gridid - kFirstGridId
};

// A busy kernel on all SMs: warps that loop over a range in a range, a mark with payload and a
// scoped range, until about `events` were written. With rings large enough nothing is lost.
SyntheticGpu BusyGpu(uint64_t events, uint32_t sms = 132, uint32_t warps_per_sm = 16);

}  // namespace iket::trace
