#include "supervisor/drain.h"

#include <algorithm>

#include "session/finish.h"

namespace iket::supervisor {

double Drain::Pass(const std::vector<session::RingMemory>& contexts) {
  double most = 0;
  for (const session::RingMemory& memory : contexts) most = std::max(most, Read(memory, false));
  return most;
}

std::optional<capture::Writer> Drain::Finish(uint32_t pid,
                                             const std::vector<session::RingMemory>& contexts,
                                             bool live) {
  // Twice: what was too near to the newest record in a ring that came around is given behind it.
  for (const session::RingMemory& memory : contexts) {
    Read(memory, !live);
    Read(memory, !live);
  }
  std::erase_if(contexts_, [pid](const auto& entry) { return entry.first.first == pid; });
  const auto found = writers_.find(pid);
  if (found == writers_.end()) return std::nullopt;
  std::optional<capture::Writer> writer = std::move(found->second);
  writers_.erase(found);
  return writer;
}

void Drain::Warn(std::string warning) {
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

capture::Writer* Drain::WriterOf(uint32_t pid) {
  const auto [found, is_new] = writers_.try_emplace(pid);
  if (is_new) {
    auto writer = session::BeginCapture(folder_, pid);
    if (writer) {
      found->second = std::move(*writer);
    } else {
      Warn(writer.error().message);
    }
  }
  return found->second ? &*found->second : nullptr;
}

double Drain::Read(const session::RingMemory& memory, bool quiet) {
  Context& context = contexts_[{memory.pid, memory.context}];
  if (context.failed) return 0;
  const auto fail = [&](const std::string& why) {
    context.failed = true;
    Warn(NotRead(memory, why));
    return 0.0;
  };
  const auto window = windows_.Find(memory);
  if (!window) return fail(window.error().message);
  const ring::Layout& layout = (*window)->layout();
  const size_t records_per_ring = layout.ring_bytes / ring::kRecordBytes;
  context.followers.resize(layout.ring_count(), session::RingFollower(0));
  size_t most = 0;
  bool writable = true;
  const auto follow = [&](std::span<const session::UsedRing> rings, std::vector<ring::Record>&) {
    std::vector<capture::RingContents> rows;
    for (const session::UsedRing& ring : rings) {
      session::RingFollower& follower = context.followers[ring.ring];
      if (follower.size() == 0) follower = session::RingFollower(records_per_ring);
      const auto row = follower.Follow(ring.ring, ring.header, ring.untrusted_records, quiet);
      if (!row) continue;
      most = std::max(most, row->older.size() + row->newer.size());
      rows.push_back(*row);
    }
    if (rows.empty()) return;
    capture::Writer* const writer = WriterOf(memory.pid);
    writable &= writer != nullptr;
    if (writer == nullptr) return;
    const capture::RingMoment moment{.context = memory.context,
                                     .live = !quiet,
                                     .settled = true,
                                     .number = context.moment++,
                                     .begin_ns = session::NowNs()};
    if (auto done = writer->Append(moment, rows); !done) Warn(done.error().message);
  };
  const auto done = session::CopyUsedRings(layout, (*window)->Copy(), follow);
  if (!done) return fail(done.error().message);
  if (!writable) return fail("no capture to write them to");
  return static_cast<double>(most) / static_cast<double>(records_per_ring);
}

}  // namespace iket::supervisor
