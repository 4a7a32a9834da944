#include "inject/ring_reading.h"

#include "session/finish.h"
#include "session/ring_image.h"

namespace iket::inject {
namespace {

session::WindowCopy CopyOf(const Window& window) {
  return {.table = [&](void* to, size_t bytes) { return window.CopyTable(to, bytes); },
          .rings = [&](void* to, uint64_t offset,
                       size_t bytes) { return window.CopyRings(to, offset, bytes); }};
}

}  // namespace

Result<void> RingReading::Read(const Window& window, uint32_t context, bool quiet,
                               const Append& append) {
  if (follows_) {
    // Twice: what was too near to the newest record of a ring that came around is given behind it.
    if (auto done = ReadNews(window, context, quiet, append); !done) return done;
    return ReadNews(window, context, quiet, append);
  }
  const capture::RingMoment moment{
      .context = context, .live = !quiet, .begin_ns = session::NowNs()};
  return session::ReadRings(window.layout(), CopyOf(window),
                            [&](const session::SmRings& read) { append(moment, read.rings); });
}

Result<void> RingReading::ReadNews(const Window& window, uint32_t context, bool quiet,
                                   const Append& append) {
  followers_.resize(window.layout().ring_count());
  return session::CopyUsedRings(
      window.layout(), CopyOf(window),
      [&](std::span<const session::UsedRing> rings, std::vector<ring::Record>&) {
        std::vector<capture::RingContents> news;
        for (const session::UsedRing& ring : rings) {
          if (auto row = followers_[ring.ring].Follow(ring, quiet)) news.push_back(*row);
        }
        if (news.empty()) return;
        append({.context = context,
                .live = !quiet,
                .settled = true,
                .number = moments_++,
                .begin_ns = session::NowNs()},
               news);
      });
}

}  // namespace iket::inject
