#include "capture/reader.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/mapped_file.h"
#include "capture/decode.h"
#include "capture/scan.h"

namespace iket::capture {
namespace {

// Sorts by `key` and keeps, of equal keys, the one that came last.
template <typename T, typename Key>
void KeepLatest(std::vector<T>& rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const T& a, const T& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && key(rows[i]) == key(rows[i + 1])) continue;
    if (kept != i) rows[kept] = std::move(rows[i]);
    ++kept;
  }
  rows.resize(kept);
}

constexpr auto kByIndex = [](const auto& object) { return object.index; };
constexpr auto kByKernel = [](const KernelFilter& filter) { return filter.kernel; };
constexpr auto kByEvent = [](const Declaration& declaration) {
  return std::pair(declaration.image, declaration.event);
};

constexpr auto kByPosition = [](const Attribute& attribute) {
  return std::tuple(attribute.image, attribute.event, attribute.position);
};

template <typename T, typename Key, typename Projection>
const T* Find(const std::vector<T>& rows, const Key& key, Projection projection) {
  const auto found = std::ranges::lower_bound(rows, key, {}, projection);
  return found != rows.end() && projection(*found) == key ? &*found : nullptr;
}

// Decodes everything but the rings.
class FactsDecoder {
 public:
  explicit FactsDecoder(uint64_t budget) : strings_(budget), budget_(budget) {}

  // False: malformed.
  bool AddStrings(const ChunkRef& chunk) {
    std::optional<Payload> payload = Open(chunk);
    return payload && strings_.Add(std::move(*payload));
  }
  bool AddFacts(const ChunkRef& chunk) {
    const std::optional<Payload> payload = Open(chunk);
    return payload && Decode(chunk.header.kind, payload->bytes());
  }

  Capture Take() {
    KeepLatest(capture_.sessions, kByIndex);
    KeepLatest(capture_.devices, kByIndex);
    KeepLatest(capture_.images, kByIndex);
    KeepLatest(capture_.kernels, kByIndex);
    KeepLatest(capture_.filters, kByKernel);
    KeepLatest(capture_.contexts, kByIndex);
    KeepLatest(capture_.declarations, kByEvent);
    KeepLatest(capture_.attributes, kByPosition);
    KeepLatest(capture_.edges, std::identity{});
    KeepLatest(capture_.placed_sms,
               [](const PlacedSm& placed) { return std::pair(placed.context, placed.sm); });
    KeepLatest(capture_.counters,
               [](const Counter& counter) -> const std::string& { return counter.name; });
    capture_.damage.strings_lost = strings_.lost();
    capture_.damage.cut = !done_;
    return std::move(capture_);
  }

 private:
  std::optional<Payload> Open(const ChunkRef& chunk) {
    if (chunk.header.raw_bytes > budget_) return std::nullopt;
    budget_ -= chunk.header.raw_bytes;
    return Payload::Of(chunk);
  }

  bool Decode(uint32_t kind, UntrustedBytes payload) {
    switch (kind) {
      case wire::kSession:
        return DecodeTable(payload, strings_, capture_.sessions);
      case wire::kDevice: {
        std::optional<Device> device = DecodeDevice(payload, strings_);
        if (device) capture_.devices.push_back(std::move(*device));
        return device.has_value();
      }
      case wire::kImage:
        return DecodeTable(payload, strings_, capture_.images);
      case wire::kKernel:
        return DecodeTable(payload, strings_, capture_.kernels);
      case wire::kKernelFilter:
        return DecodeTable(payload, strings_, capture_.filters);
      case wire::kDeclaration:
        return DecodeTable(payload, strings_, capture_.declarations);
      case wire::kAttribute:
        return DecodeTable(payload, strings_, capture_.attributes);
      case wire::kEdge:
        return DecodeTable(payload, strings_, capture_.edges);
      case wire::kContext:
        return DecodeTable(payload, strings_, capture_.contexts);
      case wire::kClockExchange:
        return DecodeTable(payload, strings_, capture_.exchanges);
      case wire::kPlacedSm:
        return DecodeTable(payload, strings_, capture_.placed_sms);
      case wire::kLaunch:
        return DecodeTable(payload, strings_, capture_.launches);
      case wire::kGraphNode:
        return DecodeTable(payload, strings_, capture_.graph_nodes);
      case wire::kGraphLaunch:
        return DecodeTable(payload, strings_, capture_.graph_launches);
      case wire::kCounter:
        return DecodeTable(payload, strings_, capture_.counters);
      case wire::kNote:
        return DecodeTable(payload, strings_, capture_.notes);
      default: {  // DONE; the caller passes known kinds only
        const std::optional<wire::DoneHead> done = DecodeDone(payload);
        if (!done) return false;
        done_ = true;
        capture_.damage.chunks_unwritten = done->chunks_unwritten;
        capture_.damage.bytes_unwritten = done->bytes_unwritten;
        return true;
      }
    }
  }

  Capture capture_;
  StringIndex strings_;
  uint64_t budget_;
  bool done_ = false;
};

bool IsKnown(const wire::ChunkHeader& header) {
  constexpr std::array kKinds = {
      wire::kStrings, wire::kSession,       wire::kDevice,      wire::kImage,
      wire::kKernel,  wire::kKernelFilter,  wire::kDeclaration, wire::kContext,
      wire::kLaunch,  wire::kGraphNode,     wire::kGraphLaunch, wire::kRing,
      wire::kCounter, wire::kNote,          wire::kDone,        wire::kAttribute,
      wire::kEdge,    wire::kClockExchange, wire::kPlacedSm};
  const uint16_t newest_codec = header.kind == wire::kRing ? wire::kPackedRecords : wire::kZlib;
  return header.version == wire::kChunkVersion && header.codec <= newest_codec &&
         std::ranges::find(kKinds, header.kind) != kKinds.end();
}

}  // namespace

std::span<const Attribute> AttributesOf(std::span<const Attribute> all,
                                        const Declaration& declaration) {
  return std::ranges::equal_range(all, kByEvent(declaration), {}, [](const Attribute& of) {
    return std::pair(of.image, of.event);
  });
}

bool Damage::any() const { return !Summary().empty(); }

std::string Damage::Summary() const {
  std::string text;
  const auto add = [&](uint64_t count, std::string_view one, std::string_view many) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, count == 1 ? one : many);
  };
  const auto say = [&](bool on, std::string_view what) {
    if (on) text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  };
  say(file_header_damaged, "file header damaged");
  add(chunks_damaged, "chunk damaged", "chunks damaged");
  add(chunks_malformed, "chunk malformed", "chunks malformed");
  add(chunks_missing, "chunk missing", "chunks missing");
  add(bytes_skipped, "byte skipped", "bytes skipped");
  add(strings_lost, "string lost", "strings lost");
  add(chunks_unwritten, "chunk could not be written", "chunks could not be written");
  say(cut, "end missing");
  return text;
}

const Device* Capture::FindDevice(uint32_t index) const { return Find(devices, index, kByIndex); }
const Image* Capture::FindImage(uint32_t index) const { return Find(images, index, kByIndex); }
const Kernel* Capture::FindKernel(uint32_t index) const { return Find(kernels, index, kByIndex); }
const KernelFilter* Capture::FindFilter(uint32_t kernel) const {
  return Find(filters, kernel, kByKernel);
}
const Context* Capture::FindContext(uint32_t index) const {
  return Find(contexts, index, kByIndex);
}
const Declaration* Capture::FindDeclaration(uint32_t image, uint32_t event) const {
  return Find(declarations, std::pair(image, event), kByEvent);
}

struct Reader::State {
  MappedFile mapped;
  Capture capture;
  std::vector<ChunkRef> ring_chunks;
  uint64_t ring_raw_bytes = 0;

  Result<void> Load(UntrustedBytes file, const std::string& name, const Progress& progress);
};

Result<void> Reader::State::Load(UntrustedBytes file, const std::string& name,
                                 const Progress& progress) {
  Result<Scan> scan = ScanChunks(file, name, progress);
  if (!scan) return tl::unexpected(std::move(scan.error()));

  FactsDecoder facts(FactLimit(file.size()));
  uint64_t unknown = 0;
  uint64_t malformed = 0;
  // Strings first: a damaged file may have lost order, and nothing else then has to wait.
  for (const ChunkRef& chunk : scan->chunks) {
    if (!IsKnown(chunk.header)) {
      ++unknown;
    } else if (chunk.header.kind == wire::kStrings && !facts.AddStrings(chunk)) {
      ++malformed;
    }
  }
  for (const ChunkRef& chunk : scan->chunks) {
    if (!IsKnown(chunk.header) || chunk.header.kind == wire::kStrings) continue;
    if (chunk.header.kind == wire::kRing) {
      ring_chunks.push_back(chunk);
      ring_raw_bytes += chunk.header.raw_bytes;
    } else if (!facts.AddFacts(chunk)) {
      ++malformed;
    }
  }
  capture = facts.Take();
  Damage damage = scan->damage;
  damage.chunks_unknown = unknown;
  damage.chunks_malformed = malformed;
  damage.strings_lost = capture.damage.strings_lost;
  damage.cut = capture.damage.cut;
  damage.chunks_unwritten = capture.damage.chunks_unwritten;
  damage.bytes_unwritten = capture.damage.bytes_unwritten;
  capture.damage = damage;
  return {};
}

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::Open(const std::string& path, const Progress& progress) {
  Result<MappedFile> file = MappedFile::Open(path, "capture");
  if (!file) return tl::unexpected(std::move(file.error()));
  auto state = std::make_unique<State>();
  state->mapped = std::move(*file);
  if (auto loaded = state->Load(UntrustedBytes(state->mapped.bytes()), path, progress); !loaded) {
    return tl::unexpected(std::move(loaded.error()));
  }
  return Reader(std::move(state));
}

Result<Reader> Reader::FromBytes(std::span<const std::byte> untrusted, const std::string& name) {
  auto state = std::make_unique<State>();
  if (auto loaded = state->Load(UntrustedBytes(untrusted), name, {}); !loaded) {
    return tl::unexpected(std::move(loaded.error()));
  }
  return Reader(std::move(state));
}

const Capture& Reader::capture() const { return state_->capture; }
uint64_t Reader::ring_block_count() const { return state_->ring_chunks.size(); }
uint64_t Reader::ring_raw_bytes() const { return state_->ring_raw_bytes; }

std::map<std::pair<uint32_t, uint32_t>, uint64_t> Reader::CountRingRecords() const {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;
  for (const ChunkRef& chunk : state_->ring_chunks) {
    std::optional<Payload> payload;
    if (chunk.header.codec != wire::kPackedRecords) payload = Payload::Of(chunk);
    // The table is as it is even where what follows is packed.
    const auto table = TableView::Of(payload ? payload->bytes() : chunk.stored,
                                     sizeof(wire::RingHead), sizeof(wire::RingEntry));
    if (!table) continue;
    const uint32_t context = table->head.Read<wire::RingHead>(0)->context;
    for (size_t i = 0; i < table->row_count; ++i) {
      const auto row = *table->rows.Read<wire::RingEntry>(i * table->row_bytes);
      counts[{context, row.ring}] += row.records;
    }
  }
  return counts;
}

RingWalk Reader::ForEachRingBlock(const std::function<bool(const RingBlock&)>& visit) const {
  RingWalk walk;
  for (const ChunkRef& chunk : state_->ring_chunks) {
    std::optional<Payload> payload = Payload::Of(chunk);
    std::optional<RingBlock> block =
        payload ? DecodeRings(payload->bytes()) : std::optional<RingBlock>();
    if (!block) {
      ++walk.blocks_malformed;
      continue;
    }
    block->memory = std::make_shared<const Payload>(*std::move(payload));
    ++walk.blocks;
    if (!visit(*block)) {
      walk.stopped = true;
      break;
    }
  }
  return walk;
}

}  // namespace iket::capture
