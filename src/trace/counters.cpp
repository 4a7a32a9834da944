#include "trace/counters.h"

#include <algorithm>
#include <array>

namespace iket::trace {
namespace {

constexpr std::array kCounters = {
    CounterInfo{&Counters::records_written, "records_written", "records written by all warps",
                false},
    CounterInfo{&Counters::records_kept, "records_kept", "records kept", false},
    CounterInfo{&Counters::records_lost, "records_lost", "records overwritten by newer ones", true},
    CounterInfo{&Counters::events_left_out, "events_left_out",
                "kept records of events that were not to be recorded: they are not shown", false},
    CounterInfo{&Counters::lost_is_lower_bound, "lost_is_lower_bound",
                "rings whose loss is at least what was counted: a running warp lapped its ring",
                true},
    CounterInfo{&Counters::warps_begin_missing, "warps_begin_missing",
                "warps whose begin was overwritten", true},
    CounterInfo{&Counters::warps_end_missing, "warps_end_missing", "warps without an end", true},
    CounterInfo{&Counters::warps_holed, "warps_holed",
                "warps of which records in the middle were overwritten", true},
    CounterInfo{&Counters::warps_running, "warps_running",
                "warps that still ran when the rings were read", true},
    CounterInfo{&Counters::warps_missing, "warps_missing",
                "warps that were launched and of which nothing is kept", true},
    CounterInfo{&Counters::unmatched_ends, "unmatched_ends", "closes of a range that nobody opened",
                true},
    CounterInfo{&Counters::unmatched_ends_lossy, "unmatched_ends_lossy",
                "closes of a range whose begin was overwritten", true},
    CounterInfo{&Counters::unclosed_ranges, "unclosed_ranges",
                "ranges still open at their warp's last record", true},
    CounterInfo{&Counters::ranges_cut, "ranges_cut",
                "ranges that were open where records of their warp were overwritten", true},
    CounterInfo{&Counters::crossed_closes, "crossed_closes",
                "closes that jumped over a range of another name (divergent lanes)", true},
    CounterInfo{&Counters::closed_again, "closed_again",
                "ends of a range that other lanes had ended before: the last one counts", false},
    CounterInfo{&Counters::launches_unmatched, "launches_unmatched",
                "launches that were recorded, and which of the host's log they are is not known",
                true},
    CounterInfo{&Counters::launches_unseen, "launches_unseen",
                "logged launches of which no record is kept", true},
    CounterInfo{&Counters::unknown_ids, "unknown_ids", "events whose id has no declaration", true},
    CounterInfo{&Counters::unknown_records, "unknown_records", "records whose tag says nothing",
                true},
    CounterInfo{&Counters::unknown_kernels, "unknown_kernels",
                "warps whose kernel's number is not in the capture", true},
    CounterInfo{&Counters::orphan_identities, "orphan_identities",
                "identities that follow no begin", true},
    CounterInfo{&Counters::missing_identities, "missing_identities",
                "begins that no identity follows", true},
    CounterInfo{&Counters::orphan_records, "orphan_records",
                "events of which nothing says which warp wrote them", true},
    CounterInfo{&Counters::tokens_again, "tokens_again",
                "ends of a token's range that had been ended: the first counts", true},
    CounterInfo{&Counters::values_missing, "values_missing",
                "values of events with several whose record is not kept", true},
    CounterInfo{&Counters::values_orphan, "values_orphan",
                "records with values of events that are not kept", true},
    CounterInfo{&Counters::flows_unmatched, "flows_unmatched",
                "flows that came in and that nothing of their name and id went out for", true},
    CounterInfo{&Counters::suspect_rings, "suspect_rings",
                "rings whose records contradict each other", true},
    CounterInfo{&Counters::backward_clocks, "backward_clocks", "steps back of a ring's clock",
                true},
    CounterInfo{&Counters::stale_records, "stale_records",
                "records beyond a ring's cursor that are of an older lap or changed while read",
                true},
    CounterInfo{&Counters::wrap_gaps, "wrap_gaps",
                "silences so long that the cycle clock may have wrapped unseen", true},
    CounterInfo{&Counters::clock_outliers, "clock_outliers",
                "pairs of cycles and globaltimer that fit no clock", true},
    CounterInfo{&Counters::clocks_missing, "clocks_missing",
                "SMs with records and without a usable pair of clocks", true},
    CounterInfo{&Counters::depth_overflows, "depth_overflows",
                "ranges not kept: more than 1,024 were open at once in their warp", true},
    CounterInfo{&Counters::rings_short, "rings_short",
                "rings whose newest records could not be read", true},
    CounterInfo{&Counters::rings_invalid, "rings_invalid",
                "rings of a context or SM that cannot be", true},
    CounterInfo{&Counters::chunks_damaged, "chunks_damaged",
                "pieces of the capture file that are damaged, missing or were never written", true},
};
static_assert(sizeof(Counters) == kCounters.size() * sizeof(uint64_t), "every counter has a name");

}  // namespace

std::span<const CounterInfo> AllCounters() { return kCounters; }

bool AnyFault(const Counters& counters) {
  return std::ranges::any_of(
      kCounters, [&](const CounterInfo& info) { return info.fault && counters.*info.member != 0; });
}

}  // namespace iket::trace
