#include "supervisor/drain.h"

#include <algorithm>
#include <cstring>

#include "session/finish.h"

namespace iket::supervisor {
namespace {

constexpr uint64_t kMadeAtFirst = uint64_t{512} << 20;
constexpr size_t kPieceBytes = size_t{1} << 20;
// What is worth another thread: half a millisecond of work.
constexpr uint64_t kRecordsPerThread = 32 << 10;
// Of a lane's buffers, the first two are for pieces.
constexpr size_t kTableBuffer = 2;

}  // namespace

// One reading of a context's rings, by several threads.
struct Drain::Reading {
  const session::RingMemory& memory;
  const RingWindow& window;
  Context& context;
  bool quiet;
  std::span<const std::byte> table;
  uint32_t rings_per_piece;

  std::atomic<uint32_t> next_ring = 0;
  std::mutex mutex = {};  // guards what follows
  News news = {};
  Result<void> done = {};

  // Takes the next piece in which a ring was used and begins to copy it. Empty if there is none.
  Result<std::vector<session::UsedRing>> Begin(CopyLane& lane, size_t buffer) {
    const ring::Layout& layout = window.layout();
    for (;;) {
      const uint32_t first = next_ring.fetch_add(rings_per_piece);
      if (first >= layout.ring_count()) return {};
      auto used = session::FindUsedRings(table, first, rings_per_piece);
      if (used.empty()) continue;
      const uint64_t offset = uint64_t{used.front().ring} * layout.ring_bytes;
      const uint64_t end = uint64_t{used.back().ring + 1} * layout.ring_bytes;
      auto begun = lane.Begin(buffer, window.rings() + offset, end - offset);
      if (!begun) return tl::unexpected(begun.error());
      return used;
    }
  }
};

Drain::News Drain::Pass(const std::vector<session::RingMemory>& contexts) {
  News all;
  for (const session::RingMemory& memory : contexts) {
    const News news = Read(memory, false);
    all.records += news.records;
    all.fullest = std::max(all.fullest, news.fullest);
  }
  return all;
}

std::optional<capture::Writer> Drain::Finish(uint32_t pid,
                                             const std::vector<session::RingMemory>& contexts,
                                             bool live) {
  for (const session::RingMemory& memory : contexts) {
    contexts_[{memory.pid, memory.context}].news = kMany;  // nobody knows
    // Twice: what was too near to the newest record in a ring that came around is given behind it.
    Read(memory, !live);
    Read(memory, !live);
  }
  std::erase_if(contexts_, [pid](const auto& entry) { return entry.first.first == pid; });
  if (contexts_.empty()) DropLanes();
  const auto found = writers_.find(pid);
  if (found == writers_.end()) return std::nullopt;
  std::optional<capture::Writer> writer = std::move(found->second);
  writers_.erase(found);
  return writer;
}

void Drain::Warn(std::string warning) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

// The capture of a process, begun when there is something to write. Null if it cannot be made.
void Drain::Append(uint32_t pid, const capture::ClockExchange& exchange) {
  const auto found = writers_.find(pid);
  if (found == writers_.end() || !found->second) return;
  if (auto done = found->second->Append(exchange); !done) Warn(done.error().message);
}

capture::Writer* Drain::WriterOf(uint32_t pid) {
  std::string why_not;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = writers_.try_emplace(pid);
    if (is_new) {
      auto writer = session::BeginCapture(folder_, pid, workers_->count(), pack_);
      if (writer) {
        found->second = std::move(*writer);
      } else {
        why_not = std::move(writer.error().message);
      }
    }
    if (found->second) return &*found->second;
  }
  if (!why_not.empty()) Warn(std::move(why_not));
  return nullptr;
}

Result<CopyLane*> Drain::LaneOf(size_t worker, const RingWindow& window) {
  std::unique_ptr<CopyLane>& lane = lanes_[worker][window.lane_number()];
  if (lane == nullptr) {
    auto opened = window.OpenLane();
    if (!opened) return tl::unexpected(opened.error());
    lane = std::move(*opened);
  }
  if (auto done = lane->Enter(); !done) return tl::unexpected(done.error());
  return lane.get();
}

// They keep the contexts of their devices, and with them memory of these.
void Drain::DropLanes() {
  for (auto& lanes : lanes_) {
    for (auto& [device, lane] : lanes) {
      if (lane != nullptr) static_cast<void>(lane->Enter());
      lane.reset();
    }
    lanes.clear();
  }
}

Drain::News Drain::Read(const session::RingMemory& memory, bool quiet) {
  Context& context = contexts_[{memory.pid, memory.context}];
  if (context.failed) return {};
  const auto fail = [&](const std::string& why) {
    context.failed = true;
    Warn(NotRead(memory, why));
    return News{};
  };
  const auto window = windows_.Find(memory);
  if (!window) return fail(window.error().message);
  if (workers_ == nullptr) {
    workers_ = std::make_unique<Workers>(threads_);
    lanes_.resize(workers_->count());
    if (workers_->count() < threads_) {
      Warn(fmt::format("only {} of {} threads could be started to empty rings (ulimit -u)",
                       workers_->count(), threads_));
    }
  }
  const ring::Layout& layout = (*window)->layout();
  const bool is_first = context.followers.empty();
  context.followers.resize(layout.ring_count());
  // Memory that is touched for the first time costs more than all that a pass does with it. Where
  // it is not much it is made now, when the program has most likely not begun.
  if (is_first && layout.rings_bytes() <= kMadeAtFirst) {
    std::atomic<uint32_t> next = 0;
    workers_->Run(workers_->count(), [&](size_t) {
      constexpr uint32_t kAtATime = ring::kSlotsPerSm;
      for (uint32_t i; (i = next.fetch_add(kAtATime)) < layout.ring_count();) {
        for (uint32_t ring = i; ring < std::min(i + kAtATime, layout.ring_count()); ++ring) {
          context.followers[ring] = session::RingFollower(layout.ring_bytes / ring::kRecordBytes);
        }
      }
    });
  }

  // A header must be read before the records that it speaks of.
  const auto table = CopyTable(**window);
  if (!table) return fail(table.error().message);
  context.table.assign(table->begin(), table->end());

  Reading reading{.memory = memory,
                  .window = **window,
                  .context = context,
                  .quiet = quiet,
                  .table = context.table,
                  .rings_per_piece = static_cast<uint32_t>(
                      std::clamp<size_t>(kPieceBytes / layout.ring_bytes, 1, ring::kSlotsPerSm))};
  const auto run = [&](size_t workers, uint64_t enough) {
    workers_->Run(workers, [&](size_t worker) { Work(reading, worker, enough); });
  };
  run(1 + context.news / kRecordsPerThread, 2 * kRecordsPerThread);
  if (reading.next_ring < layout.ring_count()) run(workers_->count(), kMany);
  if (!reading.done) return fail(reading.done.error().message);
  context.news = reading.news.records;
  return reading.news;
}

bool Drain::HasNewHeaders(const std::vector<session::RingMemory>& contexts) {
  return std::ranges::any_of(contexts, [&](const session::RingMemory& memory) {
    const Context& context = contexts_[{memory.pid, memory.context}];
    if (context.failed) return false;
    // What goes wrong is said by the pass that follows.
    const auto window = windows_.Find(memory);
    if (!window || context.table.empty()) return true;
    const auto table = CopyTable(**window);
    return !table || table->size() != context.table.size() ||
           std::memcmp(table->data(), context.table.data(), table->size()) != 0;
  });
}

// Good until the next one is copied.
Result<std::span<const std::byte>> Drain::CopyTable(RingWindow& window) {
  const auto lane = LaneOf(0, window);
  if (!lane) return tl::unexpected(lane.error());
  const uint64_t bytes = uint64_t{window.layout().ring_count()} * ring::kHeaderStride;
  auto done = (*lane)->Begin(kTableBuffer, window.table(), bytes);
  if (done) done = (*lane)->Wait();
  if (!done) return tl::unexpected(done.error());
  return (*lane)->Bytes(kTableBuffer);
}

void Drain::Work(Reading& reading, size_t worker, uint64_t enough) {
  const auto lane = LaneOf(worker, reading.window);
  auto done = lane ? Follow(reading, **lane, enough) : Result<void>(tl::unexpected(lane.error()));
  if (done) return;
  reading.next_ring = reading.window.layout().ring_count();  // for all
  const std::lock_guard lock(reading.mutex);
  if (reading.done) reading.done = std::move(done);
}

// Follows piece after piece, until this thread has found `enough` news.
Result<void> Drain::Follow(Reading& reading, CopyLane& lane, uint64_t enough) {
  const uint64_t ring_bytes = reading.window.layout().ring_bytes;
  News news;
  size_t buffer = 0;
  auto piece = reading.Begin(lane, buffer);
  while (piece && !piece->empty()) {
    if (auto done = lane.Wait(); !done) return done;
    auto next = news.records < enough ? reading.Begin(lane, 1 - buffer)
                                      : Result<std::vector<session::UsedRing>>();
    const std::span<const std::byte> bytes = lane.Bytes(buffer);
    for (session::UsedRing& ring : *piece) {
      const auto part = bytes.subspan((ring.ring - piece->front().ring) * ring_bytes, ring_bytes);
      ring.untrusted_records = {reinterpret_cast<const ring::Record*>(part.data()),
                                ring_bytes / ring::kRecordBytes};
    }
    if (auto done = Append(reading, *piece, news); !done) return done;
    piece = std::move(next);
    buffer = 1 - buffer;
  }
  if (!piece) return tl::unexpected(piece.error());
  const std::lock_guard lock(reading.mutex);
  reading.news.records += news.records;
  reading.news.fullest = std::max(reading.news.fullest, news.fullest);
  return {};
}

// What is new of these rings, as a moment.
Result<void> Drain::Append(Reading& reading, std::span<const session::UsedRing> rings, News& news) {
  std::vector<capture::RingContents> rows;
  for (const session::UsedRing& ring : rings) {
    const auto row = reading.context.followers[ring.ring].Follow(ring, reading.quiet);
    if (!row) continue;
    const size_t size = ring.untrusted_records.size();
    const size_t records = row->older.size() + row->newer.size();
    news.records += records;
    news.fullest = std::max(news.fullest, static_cast<double>(records) / static_cast<double>(size));
    rows.push_back(*row);
  }
  if (rows.empty()) return {};
  capture::Writer* const writer = WriterOf(reading.memory.pid);
  if (writer == nullptr) return Fail(ErrorKind::kSystem, "no capture to write them to");
  const capture::RingMoment moment{.context = reading.memory.context,
                                   .live = !reading.quiet,
                                   .settled = true,
                                   .number = reading.context.moments++,
                                   .begin_ns = session::NowNs()};
  if (auto done = writer->Append(moment, rows); !done) Warn(done.error().message);
  return {};
}

}  // namespace iket::supervisor
