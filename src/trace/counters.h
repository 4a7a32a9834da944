// counters.h: everything that a capture lost, or that does not fit together, as numbers.
//
// All zero means: every record that any warp wrote is in the model, and each is understood.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace iket::trace {

struct Counters {
  // What there was.
  uint64_t records_written = 0;  // by all warps, in records of 16 bytes
  uint64_t records_kept = 0;
  uint64_t records_lost = 0;  // overwritten by newer ones: written - kept

  uint64_t events_left_out = 0;  // kept records of events that were not to be recorded: not shown

  // What is incomplete.
  uint64_t lost_is_lower_bound = 0;   // rings whose loss is at least what was counted
  uint64_t warps_begin_missing = 0;   // warps whose begin was overwritten
  uint64_t warps_end_missing = 0;     // warps without an end
  uint64_t warps_holed = 0;           // warps that lost records in their middle
  uint64_t warps_running = 0;         // of these, still running when the rings were read
  uint64_t warps_missing = 0;         // warps that the host's log promises and no ring holds
  uint64_t unmatched_ends = 0;        // closes of a range nobody opened: not explained by a loss
  uint64_t unmatched_ends_lossy = 0;  // the same, in warps whose begin was overwritten
  uint64_t unclosed_ranges = 0;       // ranges still open at their warp's last record
  uint64_t ranges_cut = 0;            // ranges that were open where such a loss began
  uint64_t crossed_closes = 0;        // closes that jumped over a range of another name
  uint64_t closed_again = 0;          // ends of scoped ranges that other lanes had ended before
  uint64_t launches_unmatched = 0;    // grids on the GPU that the host's log does not explain
  uint64_t launches_unseen = 0;       // launches of patched kernels in the log without any record

  // What cannot be trusted.
  uint64_t unknown_ids = 0;         // events whose id has no declaration
  uint64_t unknown_records = 0;     // records with a tag that says nothing
  uint64_t unknown_kernels = 0;     // warps whose kernel's number has no kernel
  uint64_t orphan_identities = 0;   // identities that follow no begin
  uint64_t missing_identities = 0;  // begins that no identity follows
  uint64_t orphan_records = 0;      // events of which nothing says whose they are
  uint64_t tokens_again = 0;        // ends of tokens whose range had ended
  uint64_t values_missing = 0;      // values of events whose record is not kept
  uint64_t values_orphan = 0;       // records of values that no kept event has
  uint64_t flows_unmatched = 0;     // flows that came from nowhere, in complete launches
  uint64_t suspect_rings = 0;       // rings that contradict themselves
  uint64_t backward_clocks = 0;     // steps back of a ring's clock
  uint64_t stale_records = 0;       // beyond the cursor: of an older lap, or changed while read
  uint64_t wrap_gaps = 0;           // silences that may hide a wrap of %clock
  uint64_t clock_outliers = 0;      // (cycles, globaltimer) pairs that fit no clock
  uint64_t clocks_missing = 0;      // SMs with records and without any usable pair
  uint64_t depth_overflows = 0;     // ranges nested deeper than 65,535
  uint64_t rings_short = 0;    // rings whose newest records could not be read (they count as lost)
  uint64_t rings_invalid = 0;  // rings of a context or SM that cannot be: left out
  uint64_t chunks_damaged =
      0;  // pieces of the capture file that were damaged, missing or unwritten
};

struct CounterInfo {
  uint64_t Counters::* member;
  std::string_view name;     // a key for JSON
  std::string_view meaning;  // for a person: stands after the number
  bool fault;                // false for plain facts (written, kept); true: worth a line if not 0
};

// All of them, in the order of the struct.
std::span<const CounterInfo> AllCounters();

// True if a fault is counted: something is lost, doubtful or not understood.
bool AnyFault(const Counters& counters);

}  // namespace iket::trace
