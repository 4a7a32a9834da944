// timer_offset.h: how far a GPU's %globaltimer is ahead of the host's clock. Private to the room.
//
// No end was read before it was, and no warp began before its kernel's first launch, nor the newest
// before the last launch of all: the timer is ahead by at least so much, and by at most so much.
// Where the two were exchanged (capture::ClockExchange) that is what counts, within those bounds.
// Where rings were read often while they were in use the least is nearly right, since some end was
// read soon. Else it is taken to be ahead as the host's own time of day is, which drivers set it
// by, as far as the bounds allow that; where that is not recorded, by as much as the last launch
// allows.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "capture/reader.h"
#include "trace/launch_times.h"
#include "trace/ring_stream.h"
#include "trace/warp_scan.h"

namespace iket::trace {

// In ns, by context; none for a context that says nothing or contradicts itself, nor in captures of
// the software device, whose time goes at a pace of its own. `context_of_ring` is
// Model::rings.context; streams and spans have its rows.
std::map<uint32_t, int64_t> TimerOffsets(const capture::Capture& facts,
                                         std::span<const RingStream> streams,
                                         std::span<const WarpSpan> spans,
                                         std::span<const uint32_t> context_of_ring,
                                         const LaunchTimes& launched);

}  // namespace iket::trace
