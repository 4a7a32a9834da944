// mutate_capture.h: a mutator for targets whose input is a capture file.
//
// It takes the file apart into its chunks, changes the header or the unpacked payload of one, or
// their order, and seals all of them with right checksums again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "capture/decode.h"
#include "capture/scan.h"
#include "mutate.h"

namespace iket::fuzz {

namespace wire = capture::wire;

struct Chunk {
  wire::ChunkHeader header;
  std::vector<std::byte> stored;
};

inline std::vector<Chunk> ChunksOf(UntrustedBytes file) {
  std::vector<Chunk> chunks;
  const auto scan = capture::ScanChunks(file, "fuzz");
  if (!scan) return chunks;
  for (const auto& chunk : scan->chunks) {
    chunks.push_back({chunk.header, {chunk.stored.span().begin(), chunk.stored.span().end()}});
  }
  return chunks;
}

template <typename T>
inline std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

inline std::vector<std::byte> Sealed(const std::vector<Chunk>& chunks) {
  std::vector<std::byte> file;
  const auto append = [&file](std::span<const std::byte> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  wire::FileHeader head{wire::kMagic, wire::kFormatVersion, sizeof(head), 0, 0, 0, 0};
  head.crc = Crc32c(&head, offsetof(wire::FileHeader, crc));
  append(BytesOf(head));
  for (const Chunk& chunk : chunks) {
    wire::ChunkHeader header = chunk.header;
    header.payload_crc = Crc32c(chunk.stored.data(), chunk.stored.size());
    header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
    append(BytesOf(header));
    append(chunk.stored);
    file.resize(file.size() + wire::PaddingAfter(chunk.stored.size()));
  }
  return file;
}

// The payload of a chunk, unpacked, changed, and left unpacked; or as it is stored.
inline void ChangePayload(Chunk& chunk, bool unpacked) {
  const auto raw = capture::Payload::Of({chunk.header, UntrustedBytes(chunk.stored)});
  const bool resealed = unpacked && raw;
  chunk.stored = Changed(resealed ? raw->bytes().span() : chunk.stored, 64);
  if (!resealed && chunk.header.codec != wire::kRaw) return;
  chunk.header.codec = wire::kRaw;
  chunk.header.raw_bytes = chunk.stored.size();
}

inline size_t MutateCapture(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<Chunk> chunks = ChunksOf(UntrustedBytes(data, size));
  if (chunks.empty() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const size_t chosen = random() % chunks.size();
  Chunk& chunk = chunks[chosen];
  switch (random() % 8) {
    case 0:
      std::swap(chunk, chunks[random() % chunks.size()]);
      break;
    case 1:
      chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(random() % chunks.size()),
                    Chunk(chunk));
      break;
    case 2:
      chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(chosen));
      break;
    case 3: {
      const std::vector<std::byte> header = Changed(BytesOf(chunk.header), 0);
      std::memcpy(&chunk.header, header.data(), header.size());
      break;
    }
    case 4:
      ChangePayload(chunk, false);
      break;
    default:
      ChangePayload(chunk, true);
  }
  // stored_bytes is what the header says of what follows: mostly the truth.
  if (random() % 16 != 0) {
    for (Chunk& each : chunks) each.header.stored_bytes = each.stored.size();
  }
  return Replace(data, size, max_size, Sealed(chunks));
}

}  // namespace iket::fuzz
