#include "capture/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "capture/demangle.h"

namespace iket::capture {
namespace {

// Any 64 bytes: this room does not look into a ring's header.
ring::RingHeader HeaderOf(uint32_t seed) {
  std::array<uint32_t, sizeof(ring::RingHeader) / 4> words;
  for (uint32_t& word : words) word = seed++;
  return std::bit_cast<ring::RingHeader>(words);
}

// Draws what the fields need.
class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}

  uint64_t U64() { return random_() >> (random_() % 64); }
  uint32_t U32() { return static_cast<uint32_t>(U64()); }
  uint16_t U16() { return static_cast<uint16_t>(U64()); }
  int32_t I32() { return static_cast<int32_t>(U32()); }
  int64_t I64() { return static_cast<int64_t>(U64()); }
  bool Coin() { return random_() % 2 == 0; }
  size_t Below(size_t bound) { return random_() % bound; }

  // Any bytes, NUL included unless `text`; often one that came before.
  std::string String(bool text = false) {
    if (!known_.empty() && !text && Coin()) return known_[Below(known_.size())];
    std::string string(Coin() ? Below(8) : Below(300), '\0');
    for (char& c : string) c = static_cast<char>(text ? 1 + Below(127) : Below(256));
    if (!text) known_.push_back(string);
    return string;
  }

  template <typename T, typename Fill>
  std::vector<T> Some(size_t most, Fill fill) {
    std::vector<T> rows(Below(most + 1));
    uint32_t index = U16();
    for (T& row : rows) fill(row, index += 1 + static_cast<uint32_t>(Below(3)));
    return rows;
  }

 private:
  std::mt19937_64& random_;
  std::vector<std::string> known_;
};

SampleRing RandomRing(Draw& draw, uint32_t number) {
  SampleRing ring;
  ring.ring = number;
  ring.header = HeaderOf(draw.U32());
  ring.records.resize(draw.Coin() ? 0 : draw.Below(600));
  for (ring::Record& record : ring.records) {
    record = {draw.U32(), draw.U32(), draw.U32(), draw.U32()};
  }
  ring.older = draw.Below(ring.records.size() + 1);
  ring.lag_bytes = draw.Coin() ? 0 : 16 * draw.Below(10);
  ring.written = ring.lag_bytes + 16 * (ring.records.size() + draw.Below(1000));
  return ring;
}

}  // namespace

Sample FixedSample() {
  Sample sample;
  Capture& facts = sample.facts;
  facts.sessions = {{.index = 0,
                     .ended = true,
                     .software_device = true,
                     .pid = 4242,
                     .exit_status = 3,
                     .signal = 11,
                     .tool_version = "0.1.0",
                     .command_line = {"./app", "--size", "4096", "", "naïve"},
                     .host = "node7",
                     .working_directory = "/srv/app",
                     .start_realtime_ns = 1'700'000'000'000'000'001,
                     .start_ns = 5'000'000'000,
                     .end_realtime_ns = 1'700'000'001'000'000'002,
                     .end_ns = 6'000'000'000}};
  facts.devices = {
      {.index = 0,
       .simulated = true,
       .uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
       .name = "NVIDIA H200",
       .compute_major = 9,
       .compute_minor = 1,
       .sm_count = 4,
       .sm_clock_max_khz = 1'980'000,
       .sm_clock_khz = 1'755'000,
       .cuda_version = 13000,
       .driver_version = "580.159.03",
       .memory_bytes = 150'754'820'096,
       .topology = {{.tpc = 0, .gpc = 0}, {.tpc = 0, .gpc = 0}, {.tpc = 9, .gpc = 1}, {}}},
      {.index = 1, .name = "NVIDIA H200", .sm_count = 4}};
  facts.images = {{.index = 1,
                   .sm = 90,
                   .hash = 0x123456789abcdef0u,
                   .bytes = 24'576,
                   .marked_functions = 2,
                   .source = "./app"}};
  facts.kernels = {{.index = 7,
                    .image = 1,
                    .mangled_name = "_Z4gemmPfS_i",
                    .demangled_name = DemangledName("_Z4gemmPfS_i"),
                    .state = KernelState::kPatched,
                    .refusal = "1 site is guarded",
                    .registers_before = 168,
                    .registers_after = 170,
                    .sites = 12,
                    .sites_refused = 1,
                    .static_shared_bytes = 1024},
                   {.index = 8,
                    .image = 1,
                    .mangled_name = "plain",
                    .demangled_name = "plain",
                    .state = KernelState::kRefused,
                    .refusal = "names UR2",
                    .registers_before = 16,
                    .registers_after = 16,
                    .sites = 2,
                    .sites_refused = 2,
                    .static_shared_bytes = 8}};
  facts.declarations = {{.image = 1,
                         .event = 0x1234567,
                         .kind = EventKind::kRangeBegin,
                         .payload = PayloadType::kF32,
                         .name = "load",
                         .colour = 0x00ff8000,
                         .file = "gemm.cu",
                         .line = 42},
                        {.image = 1,
                         .event = 0x7fffffff,
                         .kind = EventKind::kPop,
                         .payload = PayloadType::kU64,
                         .name = "k\xff\xc3",  // not UTF-8
                         .line = 0}};
  facts.attributes = {{.image = 1,
                       .event = 0x1234567,
                       .position = 0,
                       .what = AttributeKind::kValueName,
                       .text = "k"},
                      {.image = 1,
                       .event = 0x1234567,
                       .position = 1,
                       .what = AttributeKind::kValue,
                       .number = 6,
                       .text = "stage"}};
  facts.edges = {{.image = 1,
                  .dag = "gemm",
                  .from = "load",
                  .to = "mma",
                  .label = "smem[s]",
                  .via = "mbarrier"}};
  facts.contexts = {{.index = 2,
                     .device = 0,
                     .ring_bytes = 4096,
                     .slots_per_sm = 64,
                     .sm_count = 4,
                     .device_memory_bytes = 4 << 20,
                     .sink_only = true,
                     .in_process_drain = true,
                     .recording_version = 5}};
  for (uint64_t i = 0; i < 5; ++i) {
    facts.launches.push_back({.sequence = i,
                              .stream = 0x7f00'0000'1000 + i,
                              .host_ns = 5'100'000'000 + static_cast<int64_t>(i) * 20'000,
                              .kernel = 7,
                              .context = i == 3 ? kNoContext : 2,
                              .grid = {132, 2, 1},
                              .block = {384, 1, 2},
                              .cluster = {2, 1, 1},
                              .dynamic_shared_bytes = 230'400,
                              .cooperative = i == 1,
                              .graph = i == 2,
                              .failed = i == 3});
  }
  for (uint32_t i = 0; i < 4; ++i) {
    facts.graph_nodes.push_back({.graph = 1,
                                 .node = i == 3 ? kNoNode : i,
                                 .since = uint64_t{i} << 33,
                                 .kernel = 7 + i,
                                 .grid = {132, 2, 1},
                                 .block = {384, 1, 2},
                                 .cluster = {2, 1, 1},
                                 .dynamic_shared_bytes = 1024,
                                 .cooperative = i == 0,
                                 .ordered = i == 1,
                                 .disabled = i == 2,
                                 .uncounted = i == 3});
    facts.graph_launches.push_back({.sequence = 5 + i,
                                    .stream = uint64_t{0x7f00'0000'1000} + i,
                                    .host_ns = 5'200'000'000 + int64_t{i},
                                    .graph = 1,
                                    .context = 2,
                                    .captured = i == 2,
                                    .failed = i == 3});
  }
  facts.counters = {{.name = "launch.unknown_kernel", .value = 1},
                    {.name = "ring.suspect", .value = uint64_t{1} << 40}};
  facts.notes = {{.severity = Severity::kWarning,
                  .kernel = 8,
                  .time_ns = 5'000'000'123,
                  .text = "kernel plain is refused: names UR2"},
                 {.severity = Severity::kInfo, .kernel = -1, .time_ns = 1, .text = "hello"}};

  SampleMoment live{.moment = {.context = 2, .live = true, .number = 0, .begin_ns = 5'500'000'000},
                    .rings = {}};
  SampleMoment last{.moment = {.context = 2, .live = false, .number = 1, .begin_ns = 6'100'000'000},
                    .rings = {}};
  for (uint32_t number : {0u, 65u, 255u}) {
    SampleRing ring{.ring = number,
                    .written = 160 + 16 * uint64_t{number},
                    .lag_bytes = number == 65 ? 32u : 0u,
                    .records = {},
                    .older = number == 0 ? 1u : 0u,
                    .header = HeaderOf(number)};
    for (uint32_t i = 0; i < 3 + number % 4; ++i) {
      ring.records.push_back({1000 + i, 0x1234567, number, i});
    }
    live.rings.push_back(ring);
  }
  last.rings.push_back(
      {.ring = 1, .written = 0, .lag_bytes = 0, .records = {}, .older = 0, .header = HeaderOf(99)});
  sample.moments = {live, last};
  return sample;
}

Sample RandomSample(std::mt19937_64& random) {
  Draw draw(random);
  Sample sample;
  Capture& facts = sample.facts;
  facts.sessions = draw.Some<Session>(3, [&](Session& session, uint32_t index) {
    session = {.index = index,
               .ended = draw.Coin(),
               .software_device = draw.Coin(),
               .pid = draw.U32(),
               .exit_status = draw.I32(),
               .signal = draw.I32(),
               .tool_version = draw.String(),
               .command_line = {},
               .host = draw.String(),
               .working_directory = draw.String(),
               .start_realtime_ns = draw.I64(),
               .start_ns = draw.I64(),
               .end_realtime_ns = draw.I64(),
               .end_ns = draw.I64()};
    for (size_t i = draw.Below(6); i > 0; --i) session.command_line.push_back(draw.String(true));
  });
  facts.devices = draw.Some<Device>(3, [&](Device& device, uint32_t index) {
    device = {.index = index,
              .simulated = draw.Coin(),
              .uuid = {},
              .name = draw.String(),
              .compute_major = draw.U16(),
              .compute_minor = draw.U16(),
              .sm_count = draw.U32(),
              .sm_clock_max_khz = draw.U32(),
              .sm_clock_khz = draw.U32(),
              .cuda_version = draw.U32(),
              .driver_version = draw.String(),
              .memory_bytes = draw.U64(),
              .topology = std::vector<SmPlace>(draw.Below(200))};
    for (uint8_t& byte : device.uuid) byte = static_cast<uint8_t>(draw.Below(256));
    for (SmPlace& place : device.topology) place = {draw.I32(), draw.I32()};
  });
  facts.images = draw.Some<Image>(20, [&](Image& image, uint32_t index) {
    image = {index, draw.U32(), draw.U64(), draw.U64(), draw.U32(), draw.String()};
  });
  facts.kernels = draw.Some<Kernel>(300, [&](Kernel& kernel, uint32_t index) {
    kernel = {index,
              draw.U32(),
              draw.String(),
              draw.String(),
              static_cast<KernelState>(draw.Below(256)),
              draw.String(),
              draw.U16(),
              draw.U16(),
              draw.U32(),
              draw.U32(),
              draw.U32(),
              draw.U32()};
  });
  facts.declarations = draw.Some<Declaration>(300, [&](Declaration& declaration, uint32_t event) {
    declaration = {5,
                   event,
                   static_cast<EventKind>(draw.Below(256)),
                   static_cast<PayloadType>(draw.Below(256)),
                   draw.String(),
                   draw.U32(),
                   draw.String(),
                   draw.U32(),
                   draw.Coin()};
  });
  facts.attributes = draw.Some<Attribute>(200, [&](Attribute& attribute, uint32_t position) {
    attribute = {5,
                 7,
                 position,
                 static_cast<AttributeKind>(draw.Below(256)),
                 static_cast<uint8_t>(draw.Below(256)),
                 draw.String()};
  });
  facts.edges = draw.Some<DeclaredEdge>(20, [&](DeclaredEdge& edge, uint32_t) {
    edge = {draw.U32(), draw.String(), draw.String(), draw.String(), draw.String(), draw.String()};
  });
  std::ranges::sort(facts.edges);
  facts.filters = draw.Some<KernelFilter>(5, [&](KernelFilter& filter, uint32_t index) {
    filter = {index,       draw.Coin(),
              draw.Coin(), {draw.U32(), draw.U32(), draw.U32()},
              draw.U32(),  {draw.U32(), draw.U32(), draw.U32()}};
  });
  facts.contexts = draw.Some<Context>(3, [&](Context& context, uint32_t index) {
    context = {index,      draw.U32(),  draw.U64(),  draw.U32(),  draw.U32(),
               draw.U64(), draw.Coin(), draw.Coin(), draw.Coin(), draw.U32()};
  });
  facts.launches = draw.Some<Launch>(500, [&](Launch& launch, uint32_t) {
    launch = {draw.U64(),
              draw.U64(),
              draw.I64(),
              draw.U32(),
              draw.U32(),
              {draw.U32(), draw.U32(), draw.U32()},
              {draw.U32(), draw.U32(), draw.U32()},
              {draw.U32(), draw.U32(), draw.U32()},
              draw.U32(),
              draw.Coin(),
              draw.Coin(),
              draw.Coin(),
              draw.Coin()};
  });
  facts.graph_nodes = draw.Some<GraphNode>(50, [&](GraphNode& node, uint32_t) {
    node = {draw.U32(),
            draw.U32(),
            draw.U64(),
            draw.U32(),
            {draw.U32(), draw.U32(), draw.U32()},
            {draw.U32(), draw.U32(), draw.U32()},
            {draw.U32(), draw.U32(), draw.U32()},
            draw.U32(),
            draw.Coin(),
            draw.Coin(),
            draw.Coin(),
            draw.Coin()};
  });
  facts.graph_launches = draw.Some<GraphLaunch>(500, [&](GraphLaunch& launch, uint32_t) {
    launch = {draw.U64(), draw.U64(),  draw.I64(),  draw.U32(),
              draw.U32(), draw.Coin(), draw.Coin(), draw.Coin()};
  });
  facts.exchanges = draw.Some<ClockExchange>(10, [&](ClockExchange& exchange, uint32_t) {
    exchange = {draw.U32(), draw.U64(), draw.I64(), draw.I64(), draw.I64()};
  });
  facts.placed_sms = draw.Some<PlacedSm>(200, [&](PlacedSm& placed, uint32_t index) {
    placed = {7, index, {draw.I32(), draw.I32()}};
  });
  facts.counters = draw.Some<Counter>(10, [&](Counter& counter, uint32_t index) {
    counter = {std::to_string(index) + draw.String(), draw.U64()};
  });
  std::ranges::sort(facts.counters, {}, &Counter::name);
  facts.notes = draw.Some<Note>(10, [&](Note& note, uint32_t) {
    note = {static_cast<Severity>(draw.Below(256)), draw.I32(), draw.I64(), draw.String()};
  });
  sample.moments = draw.Some<SampleMoment>(3, [&](SampleMoment& moment, uint32_t number) {
    moment.moment = {draw.U32(), draw.Coin(), draw.Coin(), number, draw.I64()};
    moment.rings = draw.Some<SampleRing>(
        40, [&](SampleRing& ring, uint32_t index) { ring = RandomRing(draw, index); });
  });
  return sample;
}

void WriteSample(const Sample& sample, Writer& writer) {
  const Capture& facts = sample.facts;
  EXPECT_TRUE(writer.Append(std::span(facts.sessions)));
  for (const Device& device : facts.devices) EXPECT_TRUE(writer.Append(device));
  EXPECT_TRUE(writer.Append(std::span(facts.images)));
  EXPECT_TRUE(writer.Append(std::span(facts.kernels)));
  EXPECT_TRUE(writer.Append(std::span(facts.filters)));
  EXPECT_TRUE(writer.Append(std::span(facts.attributes)));
  EXPECT_TRUE(writer.Append(std::span(facts.edges)));
  EXPECT_TRUE(writer.Append(std::span(facts.declarations)));
  EXPECT_TRUE(writer.Append(std::span(facts.contexts)));
  EXPECT_TRUE(writer.Append(std::span(facts.exchanges)));
  EXPECT_TRUE(writer.Append(std::span(facts.placed_sms)));
  EXPECT_TRUE(writer.Append(std::span(facts.launches)));
  EXPECT_TRUE(writer.Append(std::span(facts.graph_nodes)));
  EXPECT_TRUE(writer.Append(std::span(facts.graph_launches)));
  for (const SampleMoment& moment : sample.moments) {
    std::vector<RingContents> rings;
    for (const SampleRing& ring : moment.rings) {
      const std::span<const ring::Record> records(ring.records);
      rings.push_back({.ring = ring.ring,
                       .written = ring.written,
                       .older = records.first(ring.older),
                       .newer = records.subspan(ring.older),
                       .lag_bytes = ring.lag_bytes,
                       .header = ring.header});
    }
    EXPECT_TRUE(writer.Append(moment.moment, rings));
  }
  EXPECT_TRUE(writer.Append(std::span(facts.counters)));
  EXPECT_TRUE(writer.Append(std::span(facts.notes)));
}

std::vector<std::byte> SampleFile(const Sample& sample, WriterOptions options) {
  auto owned = std::make_unique<MemorySink>();
  const MemorySink& sink = *owned;
  Writer writer = *Writer::Create(std::move(owned), options);
  WriteSample(sample, writer);
  EXPECT_TRUE(writer.Finish());
  EXPECT_EQ(writer.file_bytes(), sink.bytes().size());
  return sink.bytes();
}

std::vector<SampleMoment> ReadMoments(const Reader& reader) {
  std::vector<SampleMoment> moments;
  bool at_start = true;
  const RingWalk walk = reader.ForEachRingBlock([&](const RingBlock& block) {
    if (at_start) moments.push_back({.moment = block.moment, .rings = {}});
    EXPECT_EQ(moments.back().moment, block.moment);
    at_start = block.last_of_moment;
    for (const RingRow& row : block.rows) {
      std::vector<SampleRing>& rings = moments.back().rings;
      const uint64_t kept_end = row.first + row.records.size_bytes();
      if (rings.empty() || rings.back().ring != row.ring) {
        rings.push_back({.ring = row.ring,
                         .written = row.written,
                         .lag_bytes = 0,
                         .records = {},
                         .older = 0,
                         .header = row.header});
      } else {
        EXPECT_EQ(rings.back().written - rings.back().lag_bytes, row.first);
        EXPECT_EQ(rings.back().written, row.written);
        EXPECT_EQ(std::memcmp(&rings.back().header, &row.header, sizeof(row.header)), 0);
      }
      rings.back().lag_bytes = row.written - kept_end;
      rings.back().records.insert(rings.back().records.end(), row.records.begin(),
                                  row.records.end());
    }
    return true;
  });
  EXPECT_EQ(walk.blocks_malformed, 0u);
  return moments;
}

void ExpectSame(const Sample& sample, const Reader& read) {
  const Capture& facts = read.capture();
  EXPECT_EQ(facts.sessions, sample.facts.sessions);
  EXPECT_EQ(facts.devices, sample.facts.devices);
  EXPECT_EQ(facts.images, sample.facts.images);
  EXPECT_EQ(facts.kernels, sample.facts.kernels);
  EXPECT_EQ(facts.filters, sample.facts.filters);
  EXPECT_EQ(facts.attributes, sample.facts.attributes);
  EXPECT_EQ(facts.edges, sample.facts.edges);
  EXPECT_EQ(facts.declarations, sample.facts.declarations);
  EXPECT_EQ(facts.contexts, sample.facts.contexts);
  EXPECT_EQ(facts.exchanges, sample.facts.exchanges);
  EXPECT_EQ(facts.placed_sms, sample.facts.placed_sms);
  EXPECT_EQ(facts.launches, sample.facts.launches);
  EXPECT_EQ(facts.graph_nodes, sample.facts.graph_nodes);
  EXPECT_EQ(facts.graph_launches, sample.facts.graph_launches);
  EXPECT_EQ(facts.counters, sample.facts.counters);
  EXPECT_EQ(facts.notes, sample.facts.notes);
  const std::vector<SampleMoment> moments = ReadMoments(read);
  ASSERT_EQ(moments.size(), sample.moments.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    EXPECT_EQ(moments[i].moment, sample.moments[i].moment);
    ASSERT_EQ(moments[i].rings.size(), sample.moments[i].rings.size());
    for (size_t j = 0; j < moments[i].rings.size(); ++j) {
      const SampleRing& got = moments[i].rings[j];
      const SampleRing& want = sample.moments[i].rings[j];
      EXPECT_EQ(got.ring, want.ring);
      EXPECT_EQ(got.written, want.written);
      EXPECT_EQ(got.lag_bytes, want.lag_bytes);
      EXPECT_EQ(std::memcmp(&got.header, &want.header, sizeof(got.header)), 0);
      ASSERT_EQ(got.records.size(), want.records.size());
      EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(got.records)),
                                     std::as_bytes(std::span(want.records))));
    }
  }
}

}  // namespace iket::capture
