// pftrace_check.h: is a stream of bytes a Perfetto trace whose parts fit together?
//
// Packets are whole; tracks are declared before events use them, and their parents somewhere; a
// slice ends after it began, on its track; a curve has values, and nothing else has; names are
// interned before they are used; time does not run backwards on a track, nor where it is told in
// differences. Private to check.cpp and its
// tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "export/check.h"

namespace iket::exporter {

class PftraceCheck {
 public:
  // A packet that says to be longer is taken for damage.
  static constexpr uint64_t kMostPacketBytes = uint64_t{64} << 20;

  explicit PftraceCheck(Faults& faults) : faults_(faults) {}

  // The bytes that follow those of the last call.
  void Feed(std::span<const std::byte> untrusted);
  // There are no more.
  void Finish();
  Counts counts() const;
  // A track is named as those of a software device are.
  bool simulated() const { return simulated_; }

 private:
  struct Track {
    bool declared = false;
    bool is_curve = false;      // takes values and nothing else
    uint64_t open = 0;          // slices
    uint64_t begun_offset = 0;  // of the packet that opened the last of them
    std::pair<uint64_t, uint64_t> clock{~uint64_t{0}, 0};  // of the last event: and its sequence
    uint64_t time = 0;
  };
  struct Clock {
    bool incremental = false;
    uint64_t now = 0;
  };
  struct Sequence {
    bool has_state = false;
    uint64_t default_clock = 0;
    uint64_t default_track = 0;
    std::unordered_map<uint64_t, Clock> clocks;
    std::unordered_map<uint32_t, std::unordered_set<uint64_t>> interned;  // by field
  };
  struct Packet;

  // Takes whole packets off `bytes`, which begin at base_; returns how many bytes they had.
  size_t TakePackets(UntrustedBytes bytes);
  void Add(std::string_view kind, std::string text);
  // Nothing behind can be understood.
  void Break(std::string_view kind, std::string text);

  void Take(UntrustedBytes packet);
  bool Collect(UntrustedBytes bytes, Packet& packet);
  bool TakeClocks(UntrustedBytes snapshot, Sequence& sequence);
  bool TakeInterned(UntrustedBytes interned, Sequence& sequence);
  bool TakeDefaults(UntrustedBytes defaults, Sequence& sequence);
  bool TakeDescriptor(UntrustedBytes descriptor);
  bool TakeEvent(const Packet& packet, Sequence& sequence);
  bool TakeRenderStage(UntrustedBytes event, const Sequence& sequence);
  void CheckTime(const Packet& packet, Sequence& sequence, uint64_t uuid, Track& track);
  void RequireInterned(const Sequence& sequence, uint32_t field, uint64_t iid,
                       std::string_view what);

  Faults& faults_;
  std::vector<std::byte> pending_;  // the beginning of a packet
  uint64_t base_ = 0;               // offset of what is not taken yet
  uint64_t offset_ = 0;             // of the packet at hand
  bool broken_ = false;
  bool simulated_ = false;
  std::unordered_map<uint64_t, Track> tracks_;
  std::unordered_map<uint64_t, uint64_t> parents_;  // offset of the first descriptor that names it
  std::unordered_map<uint64_t, Sequence> sequences_;
  uint64_t packets_ = 0;
  uint64_t events_ = 0;
};

}  // namespace iket::exporter
