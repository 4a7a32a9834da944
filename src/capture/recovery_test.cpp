// Captures of a real GPU, cut at every byte and damaged ten thousand times: every chunk of which
// all bytes are left is read, none is read twice, and what is not read is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "capture/reader.h"
#include "capture/scan.h"

namespace iket::capture {
namespace {

using Bytes = std::vector<std::byte>;

Bytes RealCapture(const std::string& name) {
  std::ifstream file(IKET_SOURCE_DIR "/tests/data/h200/" + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

Scan ScanOf(std::span<const std::byte> file) {
  Result<Scan> scan = ScanChunks(UntrustedBytes(file), "test");
  EXPECT_TRUE(scan) << scan.error().message;
  return std::move(*scan);
}

uint64_t Malformed(const Reader& reader) {
  const RingWalk walk = reader.ForEachRingBlock([](const RingBlock&) { return true; });
  return reader.capture().damage.chunks_malformed + walk.blocks_malformed;
}

template <typename T>
void Append(Bytes& file, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  file.insert(file.end(), bytes.begin(), bytes.end());
}

// All chunks of all captures of the GPU in one file, numbered anew.
Bytes LargeCapture() {
  Bytes file;
  uint32_t sequence = 0;
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(IKET_SOURCE_DIR "/tests/data/h200")) {
    if (entry.path().extension() == ".iketcap") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const Bytes one = RealCapture(name);
    if (file.empty()) file.assign(one.begin(), one.begin() + sizeof(wire::FileHeader));
    for (const ChunkRef& chunk : ScanOf(one).chunks) {
      wire::ChunkHeader header = chunk.header;
      header.sequence = sequence++;
      header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
      Append(file, header);
      file.insert(file.end(), chunk.stored.span().begin(), chunk.stored.span().end());
      file.resize(file.size() + wire::PaddingAfter(chunk.stored.size()));
    }
  }
  return file;
}

// Header and payload of a chunk, without its padding.
struct Extent {
  size_t begin;
  size_t end;
};

std::vector<Extent> ExtentsOf(const Bytes& file) {
  std::vector<Extent> extents;
  for (const ChunkRef& chunk : ScanOf(file).chunks) {
    const auto payload = static_cast<size_t>(chunk.stored.data() - file.data());
    extents.push_back({payload - sizeof(wire::ChunkHeader), payload + chunk.stored.size()});
  }
  return extents;
}

// A file under repair that never happens: which runs of it are still the original's.
class Accident {
 public:
  explicit Accident(const Bytes& whole) : file_(whole), left_{{0, whole.size(), 0}} {}

  const Bytes& file() const { return file_; }

  // Puts `bytes` over what is there.
  void Overwrite(size_t at, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), file_.begin() + static_cast<ptrdiff_t>(at));
    Cut(at, bytes.size());
  }
  void Remove(size_t at, size_t length) {
    const auto begin = file_.begin() + static_cast<ptrdiff_t>(at);
    file_.erase(begin, begin + static_cast<ptrdiff_t>(length));
    Cut(at, length);
    for (Run& run : left_) {
      if (run.now >= at) run.now -= length;
    }
  }
  void Insert(size_t at, std::span<const std::byte> bytes) {
    file_.insert(file_.begin() + static_cast<ptrdiff_t>(at), bytes.begin(), bytes.end());
    Cut(at, 0);
    for (Run& run : left_) {
      if (run.now >= at) run.now += bytes.size();
    }
  }
  // True if these bytes of the original lie side by side in the file.
  bool Has(size_t begin, size_t end) const {
    return std::ranges::any_of(
        left_, [&](const Run& run) { return run.begin <= begin && end <= run.begin + run.size; });
  }

 private:
  struct Run {
    size_t begin;  // in the original
    size_t size;
    size_t now;  // where it begins now
  };
  // Forgets the bytes [at, at + length) of the file as it is now.
  void Cut(size_t at, size_t length) {
    std::vector<Run> left;
    for (const Run& run : left_) {
      const size_t end = run.now + run.size;
      if (run.now < at) left.push_back({run.begin, std::min(end, at) - run.now, run.now});
      const size_t rest = std::max(run.now, at + length);
      if (rest < end) left.push_back({run.begin + (rest - run.now), end - rest, rest});
    }
    left_ = std::move(left);
  }

  Bytes file_;
  std::vector<Run> left_;
};

// Up to six wounds anywhere behind the magic: bits flipped, zeros or random bytes written over, a
// piece of the file over another or between two bytes, a piece gone, the end gone.
Accident Damaged(const Bytes& whole, std::mt19937_64& random) {
  Accident accident(whole);
  for (size_t wounds = 1 + random() % 6; wounds > 0; --wounds) {
    const size_t size = accident.file().size();
    constexpr std::array<size_t, 4> kLengths = {1, 64, 4096, 60'000};
    const size_t length =
        std::min(1 + random() % kLengths[random() % kLengths.size()], size - wire::kMagic.size());
    const size_t at = wire::kMagic.size() + random() % (size - wire::kMagic.size() - length + 1);
    const size_t from = random() % (whole.size() - length);
    Bytes piece(whole.begin() + static_cast<ptrdiff_t>(from),
                whole.begin() + static_cast<ptrdiff_t>(from + length));
    switch (random() % 8) {
      case 0:
      case 1: {
        const std::byte flipped = accident.file()[at] ^ std::byte{1}
                                                            << static_cast<int>(random() % 8);
        accident.Overwrite(at, std::span(&flipped, 1));
        break;
      }
      case 2:
        std::ranges::fill(piece, std::byte{0});
        accident.Overwrite(at, piece);
        break;
      case 3:
        std::ranges::generate(piece, [&] { return static_cast<std::byte>(random()); });
        accident.Overwrite(at, piece);
        break;
      case 4:
        accident.Overwrite(at, piece);
        break;
      case 5:
        accident.Insert(at, piece);
        break;
      case 6:
        accident.Remove(at, length);
        break;
      default:
        if (random() % 4 == 0) accident.Remove(size - length, length);
    }
  }
  return accident;
}

// What must hold of a scan of a damaged form of `whole`. Fails the running test.
void Expect(const Bytes& whole, const std::vector<Extent>& extents, const Accident& accident,
            const Scan& scan) {
  const Bytes& file = accident.file();
  std::vector<bool> found(extents.size());
  uint64_t payload_bytes = 0;
  for (const ChunkRef& chunk : scan.chunks) {
    // Never anything that was not in the original, and nothing twice.
    ASSERT_LT(chunk.header.sequence, extents.size());
    const Extent& extent = extents[chunk.header.sequence];
    const std::byte* begin = chunk.stored.data() - sizeof(wire::ChunkHeader);
    ASSERT_TRUE(std::equal(begin, chunk.stored.data() + chunk.stored.size(),
                           whole.begin() + static_cast<ptrdiff_t>(extent.begin),
                           whole.begin() + static_cast<ptrdiff_t>(extent.end)));
    ASSERT_FALSE(found[chunk.header.sequence]);
    found[chunk.header.sequence] = true;
    payload_bytes += extent.end - extent.begin;
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    ASSERT_TRUE(found[i] || !accident.Has(extents[i].begin, extents[i].end)) << "chunk " << i;
  }
  const Damage& damage = scan.damage;
  ASSERT_EQ(damage.chunks_whole, scan.chunks.size());
  const auto numbers =
      static_cast<int64_t>(damage.chunks_whole + damage.chunks_damaged + damage.chunks_missing);
  ASSERT_LE(numbers, static_cast<int64_t>(extents.size()));
  ASSERT_GT(numbers, scan.chunks.empty() ? -1 : int64_t{scan.chunks.back().header.sequence});
  const uint64_t header_bytes = damage.file_header_damaged ? 0 : sizeof(wire::FileHeader);
  const uint64_t most = file.size() - header_bytes - payload_bytes;
  ASSERT_LE(damage.bytes_skipped, most);
  ASSERT_GE(damage.bytes_skipped + 7 * scan.chunks.size(), most);  // their padding
}

TEST(Recovery, ARealCaptureCutAtEveryByte) {
  const Bytes whole = RealCapture("gemm_wgmma_marked.iketcap");
  const std::vector<Extent> extents = ExtentsOf(whole);
  size_t expected = 0;
  for (size_t size = wire::kMagic.size(); size <= whole.size(); ++size) {
    if (expected < extents.size() && extents[expected].end == size) ++expected;
    const std::span cut(whole.data(), size);
    const Scan scan = ScanOf(cut);
    ASSERT_EQ(scan.chunks.size(), expected) << "cut at " << size;
    ASSERT_EQ(scan.damage.chunks_missing, 0u) << "cut at " << size;
    if (size % 64 != 0) continue;
    const Reader reader = *Reader::FromBytes(cut, "cut");
    ASSERT_TRUE(reader.capture().damage.cut);
    ASSERT_EQ(Malformed(reader), 0u);
  }
  EXPECT_EQ(expected, extents.size());
}

TEST(Recovery, TenThousandAccidents) {
  std::mt19937_64 random(20261130);
  const Bytes whole = LargeCapture();
  const std::vector<Extent> extents = ExtentsOf(whole);
  ASSERT_GT(extents.size(), 50u);
  // Its captures define the same strings, each but the first in vain.
  const uint64_t malformed = Malformed(*Reader::FromBytes(whole, "whole"));
  uint64_t lost = 0;
  for (int round = 0; round < 10'000; ++round) {
    SCOPED_TRACE(round);
    const Accident accident = Damaged(whole, random);
    const Scan scan = ScanOf(accident.file());
    Expect(whole, extents, accident, scan);
    if (HasFatalFailure()) return;
    lost += extents.size() - scan.chunks.size();
    if (round % 50 != 0) continue;
    const Reader reader = *Reader::FromBytes(accident.file(), "damaged");
    ASSERT_LE(Malformed(reader), malformed);
    if (scan.chunks.size() < extents.size()) {
      ASSERT_TRUE(reader.capture().damage.any());
      ASSERT_FALSE(reader.capture().damage.Summary().empty());
    }
  }
  EXPECT_GT(lost, 10'000u);  // the accidents were not harmless
}

TEST(Recovery, MissingPaddingCostsNothing) {
  const Bytes whole = LargeCapture();
  const std::vector<Extent> extents = ExtentsOf(whole);
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    const size_t padding = extents[i + 1].begin - extents[i].end;
    if (padding == 0) continue;
    Accident accident(whole);
    accident.Remove(extents[i].end, padding);
    EXPECT_EQ(ScanOf(accident.file()).chunks.size(), extents.size());
    EXPECT_EQ(ScanOf(accident.file()).damage.bytes_skipped, 0u);
  }
}

TEST(Recovery, ACopyIsNotReadTwiceAndOrderIsTheWriters) {
  const Bytes whole = LargeCapture();
  const std::vector<Extent> extents = ExtentsOf(whole);
  const auto chunk = [&](size_t i) {
    return std::span(whole).subspan(extents[i].begin, extents[i + 1].begin - extents[i].begin);
  };
  Accident accident(whole);
  accident.Insert(extents[2].begin, chunk(7));  // before its turn
  const Scan scan = ScanOf(accident.file());
  ASSERT_EQ(scan.chunks.size(), extents.size());
  for (uint32_t i = 0; i < scan.chunks.size(); ++i) EXPECT_EQ(scan.chunks[i].header.sequence, i);
  EXPECT_EQ(scan.damage.bytes_skipped, chunk(7).size());
  EXPECT_EQ(scan.damage.chunks_damaged + scan.damage.chunks_missing, 0u);
}

}  // namespace
}  // namespace iket::capture
