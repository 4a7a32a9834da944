// reader.h: reads a capture file (docs/format.md) that nobody vouches for.
//
// Opening walks every chunk, checks its checksum, steps over damage and decodes all but the rings,
// which are unpacked one chunk at a time when they are walked. So memory is the facts plus one ring
// chunk, however large the file is. Any bytes give a capture or an error, never a crash; what is
// skipped is counted in `Damage`.
//
// Cost: opening is one CRC-32C pass over the file; a walk unpacks the rings once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "capture/content.h"

namespace iket::capture {

// What a reader had to pass over. All zero and `cut` false: the file is as its writer left it.
// Chunks of an unknown kind are no damage: a newer writer made them (docs/format.md, versions).
struct Damage {
  uint64_t chunks_whole = 0;      // found, checksum right (unknown and malformed ones included)
  uint64_t chunks_damaged = 0;    // header found, payload not right, nor found elsewhere
  uint64_t chunks_unknown = 0;    // of a kind, version or codec that this reader does not know
  uint64_t chunks_malformed = 0;  // checksum right, contents against the rules: dropped
  uint64_t chunks_missing = 0;    // gaps between the sequence numbers of headers that were found
  uint64_t bytes_skipped = 0;
  uint64_t strings_lost = 0;  // references to strings that no chunk defined
  bool file_header_damaged = false;
  bool cut = false;               // no DONE: the file was cut, or its writer died
  uint64_t chunks_unwritten = 0;  // what the writer itself could not write (disk full)
  uint64_t bytes_unwritten = 0;   // their raw bytes

  bool operator==(const Damage&) const = default;
  // True if something that was once part of the capture is not in it.
  bool any() const;
  // One sentence for a person, such as "2 chunks damaged, 512 bytes skipped, end missing"; empty if
  // nothing is wrong.
  std::string Summary() const;
};

// Those of one declaration, of all, which are sorted as Capture has them.
std::span<const Attribute> AttributesOf(std::span<const Attribute> all,
                                        const Declaration& declaration);

// Everything but the rings. Lists are sorted by index (declarations by image, then event; launches,
// nodes of graphs and notes in the order of the file) and hold each object once.
struct Capture {
  std::vector<Session> sessions;
  std::vector<Device> devices;
  std::vector<Image> images;
  std::vector<Kernel> kernels;
  std::vector<KernelFilter> filters;  // sorted by kernel
  std::vector<Attribute> attributes;  // sorted by image, event and position
  std::vector<DeclaredEdge> edges;    // sorted
  std::vector<Declaration> declarations;
  std::vector<Context> contexts;
  std::vector<ClockExchange> exchanges;  // in the order of the file
  std::vector<PlacedSm> placed_sms;      // sorted by context and SM
  std::vector<Launch> launches;
  std::vector<GraphNode> graph_nodes;
  std::vector<GraphLaunch> graph_launches;
  std::vector<Counter> counters;  // sorted by name
  std::vector<Note> notes;
  Damage damage;

  // By binary search; null if there is none.
  const Device* FindDevice(uint32_t index) const;
  const Image* FindImage(uint32_t index) const;
  const Kernel* FindKernel(uint32_t index) const;
  const KernelFilter* FindFilter(uint32_t kernel) const;
  const Context* FindContext(uint32_t index) const;
  const Declaration* FindDeclaration(uint32_t image, uint32_t event) const;
  std::span<const Attribute> AttributesOf(const Declaration& declaration) const {
    return capture::AttributesOf(attributes, declaration);
  }
};

// Facts (all but rings) whose raw payloads pass this in sum are dropped and counted as malformed,
// so that a small file cannot ask for much memory.
constexpr uint64_t FactLimit(uint64_t file_bytes) { return (uint64_t{64} << 20) + 32 * file_bytes; }

// What a walk over the rings met.
struct RingWalk {
  uint64_t blocks = 0;
  uint64_t blocks_malformed = 0;  // checksum right, contents against the rules: dropped
  bool stopped = false;           // the visitor asked to stop
};

class Reader {
 public:
  // Maps the file. Errors: kSystem (cannot be opened), kBadInput (no capture, or a version or a
  // required flag that is not known). The file must not shrink while the Reader lives.
  static Result<Reader> Open(const std::string& path, const Progress& progress = {});
  // Reads bytes that stay owned by the caller and outlive the Reader. `name` is for messages.
  static Result<Reader> FromBytes(std::span<const std::byte> untrusted, const std::string& name);

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const Capture& capture() const;
  // Whole RING chunks, and the sum of their raw lengths in bytes.
  uint64_t ring_block_count() const;
  uint64_t ring_raw_bytes() const;

  // How many records each ring has in all chunks, by context and ring. Packed ones stay packed.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> CountRingRecords() const;

  // Calls `visit` for each whole RING chunk in the order of the file; the block lives until `visit`
  // returns, its records as long as the Reader and a copy of RingBlock::memory do. `visit` returns
  // false to stop.
  RingWalk ForEachRingBlock(const std::function<bool(const RingBlock&)>& visit) const;

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace iket::capture
