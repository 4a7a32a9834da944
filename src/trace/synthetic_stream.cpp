#include "trace/synthetic_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <vector>

#include "capture/writer.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using ring::kRecordBytes;
using ring::Record;

constexpr uint32_t kSms = 132, kWarpsOfCta = 16;
constexpr uint32_t kRings = kSms * kWarpsOfCta;
constexpr uint32_t kEventsOfRound = 8;
constexpr uint32_t kMostStepCycles = 160;
constexpr double kGhz = 1.98;
constexpr double kBetweenLaunchesNs = 5000;

// What one ring tells so far.
struct Ring {
  uint64_t written = 0;
  ring::RingHeader header{};
};

class Stream {
 public:
  explicit Stream(uint32_t rounds)
      : rounds_(rounds),
        gpu_({.sms = kSms, .ring_bytes = 1 << 20, .ghz = kGhz, .keep_log = false}) {
    using Kind = capture::EventKind;
    kernel_ = gpu_.AddKernel("stream");
    const uint32_t tile = gpu_.Declare(Kind::kPush, "tile", capture::PayloadType::kU32);
    const uint32_t load = gpu_.Declare(Kind::kPush, "load");
    const uint32_t pop = gpu_.Declare(Kind::kPop, "");
    const uint32_t mma = gpu_.Declare(Kind::kRangeBegin, "mma", capture::PayloadType::kI32);
    const uint32_t mma_end = gpu_.Declare(Kind::kRangeEnd, "mma");
    const uint32_t arrive = gpu_.Declare(Kind::kMark, "arrive");
    const uint32_t value = gpu_.Declare(Kind::kMark, "value", capture::PayloadType::kF32);
    story_ = {tile, load, arrive, pop, mma, value, mma_end, pop};
    for (uint32_t sm = 0; sm < kSms; ++sm) cta_of_sm_[sm] = sm;
    records_.resize(size_t{kRings} * RecordsOfWarp());
    rings_.resize(kRings);
  }

  SyntheticGpu& gpu() { return gpu_; }
  uint32_t RecordsOfWarp() const { return 2 + rounds_ * kEventsOfRound; }

  // The rings after one more launch: only what is new in them.
  std::vector<capture::RingContents> Launch() {
    const uint32_t grid = gpu_.Launch(kernel_, {kSms, 1, 1}, {kWarpsOfCta * 32, 1, 1});
    gpu_.Pass(kBetweenLaunchesNs);
    std::ranges::shuffle(cta_of_sm_, random_);
    std::vector<capture::RingContents> contents;
    for (uint32_t i = 0; i < kRings; ++i) {
      const uint32_t sm = i / kWarpsOfCta, index = i % kWarpsOfCta;
      const std::span<Record> records =
          std::span(records_).subspan(size_t{i} * RecordsOfWarp(), RecordsOfWarp());
      TellWarp(grid, sm, index, rings_[i], records);
      rings_[i].written += records.size_bytes();
      rings_[i].header.cursor = static_cast<uint32_t>(rings_[i].written);
      contents.push_back({.ring = sm * ring::kSlotsPerSm + index,
                          .written = rings_[i].written,
                          .older = records,
                          .header = rings_[i].header});
    }
    gpu_.Pass(rounds_ * kEventsOfRound * kMostStepCycles / kGhz);
    return contents;
  }

 private:
  void TellWarp(uint32_t grid, uint32_t sm, uint32_t index, Ring& ring, std::span<Record> records) {
    uint64_t clock = gpu_.Cycles(sm) + random_() % 400;
    const uint64_t begin = gpu_.Cycles(sm);
    const auto timer = [&] {
      const double ns = static_cast<double>(clock - begin) / kGhz;
      return (gpu_.timer_ns() + static_cast<uint64_t>(ns)) / 32 * 32;
    };
    records[0] = {static_cast<uint32_t>(clock), ring::BeginTag(kernel_),
                  static_cast<uint32_t>(timer()), ring.header.end_clock};
    records[1] = {cta_of_sm_[sm], ring::kTagIdentity | index * 32, 0, grid};
    Record* next = &records[2];
    for (uint32_t round = 0; round < rounds_; ++round) {
      const std::array<uint32_t, kEventsOfRound> payloads{
          round, 0, 0, 0, round, std::bit_cast<uint32_t>(static_cast<float>(random_() % 1000)),
          0,     0};
      for (uint32_t i = 0; i < kEventsOfRound; ++i) {
        clock += 40 + random_() % (kMostStepCycles - 40);
        *next++ = {static_cast<uint32_t>(clock), story_[i], payloads[i], 0};
      }
    }
    clock += 20;
    const uint64_t end = timer();
    ring.header.end_clock = static_cast<uint32_t>(clock);
    ring.header.end_timer_low = static_cast<uint32_t>(end);
    ring.header.end_timer_high = static_cast<uint32_t>(end >> 32);
    ring.header.identity = records[1];
  }

  const uint32_t rounds_;
  SyntheticGpu gpu_;
  uint32_t kernel_ = 0;
  std::array<uint32_t, kEventsOfRound> story_{};
  std::array<uint32_t, kSms> cta_of_sm_{};  // in the launch at hand
  std::minstd_rand random_;
  std::vector<Record> records_;  // of one launch
  std::vector<Ring> rings_;
};

Result<void> WriteFacts(const capture::Capture& facts, capture::Writer& writer) {
  Result<void> result = writer.Append(std::span<const capture::Session>(facts.sessions));
  if (result) result = writer.Append(facts.devices.front());
  if (result) result = writer.Append(std::span<const capture::Image>(facts.images));
  if (result) result = writer.Append(std::span<const capture::Kernel>(facts.kernels));
  if (result) result = writer.Append(std::span<const capture::Declaration>(facts.declarations));
  if (result) result = writer.Append(std::span<const capture::Context>(facts.contexts));
  return result;
}

}  // namespace

Result<StreamCounts> WriteSyntheticStream(const StreamLength& length, const std::string& path,
                                          const Progress& progress) {
  constexpr uint64_t kEventsOfRounds = uint64_t{kRings} * kEventsOfRound;
  const auto rounds = static_cast<uint32_t>(
      std::clamp<uint64_t>(length.events / kEventsOfRounds, 1, std::max(length.rounds, 1u)));
  const uint64_t launches = std::max<uint64_t>(
      (length.events + kEventsOfRounds * rounds / 2) / (kEventsOfRounds * rounds), 1);
  auto writer = capture::Writer::Create(path, {.pack_rings = true});
  if (!writer) return tl::unexpected(writer.error());
  Stream stream(rounds);
  Result<void> result = WriteFacts(stream.gpu().facts(), *writer);
  for (uint64_t i = 0; result && i < launches; ++i) {
    const std::vector<capture::RingContents> contents = stream.Launch();
    result = writer->Append(
        {.settled = true, .number = i, .begin_ns = static_cast<int64_t>(stream.gpu().now_ns())},
        contents);
    if (progress) progress(i + 1, launches);
  }
  if (result) {
    result = writer->Append(std::span<const capture::Launch>(stream.gpu().facts().launches));
  }
  if (result) result = writer->Finish();
  if (!result) return tl::unexpected(result.error());
  return StreamCounts{.launches = launches,
                      .warps = launches * kRings,
                      .events = launches * kEventsOfRounds * rounds};
}

}  // namespace iket::trace
