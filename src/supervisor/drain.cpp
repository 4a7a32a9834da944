#include "supervisor/drain.h"

#include <algorithm>

#include "base/bytes.h"
#include "session/finish.h"

namespace iket::supervisor {
namespace {

using ring::RingHeader;

}  // namespace

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
    Warn(fmt::format("rings of context {} of process {} not read: {}", memory.context, memory.pid,
                     why));
    return 0.0;
  };
  const auto window = windows_.Find(memory);
  if (!window) return fail(window.error().message);
  const ring::Layout& layout = (*window)->layout();
  const session::WindowCopy copy = (*window)->Copy();
  std::vector<std::byte> table(layout.table_bytes());
  if (auto done = copy.table(table.data(), table.size()); !done) return fail(done.error().message);

  const UntrustedBytes headers(table.data(), table.size());
  const size_t records_per_ring = layout.ring_bytes / ring::kRecordBytes;
  const uint64_t bytes_per_sm = uint64_t{ring::kSlotsPerSm} * layout.ring_bytes;
  context.followers.resize(layout.ring_count(), session::RingFollower(0));
  std::vector<ring::Record> records(records_per_ring * ring::kSlotsPerSm);
  size_t most = 0;
  for (uint32_t sm = 0; sm < layout.sm_count; ++sm) {
    const auto header_of = [&](uint32_t index) {
      return *headers.Read<RingHeader>(uint64_t{index} * ring::kHeaderStride);
    };
    const uint32_t first = sm * ring::kSlotsPerSm;
    bool used = false;
    for (uint32_t ring = first; ring < first + ring::kSlotsPerSm; ++ring) {
      used |= session::IsUsed(header_of(ring));
    }
    if (!used) continue;
    if (auto done = copy.rings(records.data(), sm * bytes_per_sm, bytes_per_sm); !done) {
      return fail(done.error().message);
    }
    std::vector<capture::RingContents> rows;
    for (uint32_t ring = first; ring < first + ring::kSlotsPerSm; ++ring) {
      const RingHeader header = header_of(ring);
      if (!session::IsUsed(header)) continue;
      session::RingFollower& follower = context.followers[ring];
      if (follower.size() == 0) follower = session::RingFollower(records_per_ring);
      const auto row = follower.Follow(
          ring, header,
          std::span(records).subspan((ring - first) * records_per_ring, records_per_ring), quiet);
      if (!row) continue;
      most = std::max(most, row->older.size() + row->newer.size());
      rows.push_back(*row);
    }
    if (rows.empty()) continue;
    capture::Writer* const writer = WriterOf(memory.pid);
    if (writer == nullptr) return fail("no capture to write them to");
    const capture::RingMoment moment{.context = memory.context,
                                     .live = !quiet,
                                     .settled = true,
                                     .number = context.moment++,
                                     .begin_ns = session::NowNs()};
    if (auto done = writer->Append(moment, rows); !done) Warn(done.error().message);
  }
  return static_cast<double>(most) / static_cast<double>(records_per_ring);
}

}  // namespace iket::supervisor
