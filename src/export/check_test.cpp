// Exports that are sound, and what is said of each way to damage one.
#include "export/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "export/formats.h"
#include "export/gzip.h"
#include "export/perfetto_fields.h"
#include "export/proto.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Result<CheckedExport> Check(const std::string& file) {
  return CheckExport(std::as_bytes(std::span(file)), "test");
}

std::vector<Faults::Fault> FaultsOf(const std::string& file) {
  const auto checked = Check(file);
  EXPECT_TRUE(checked) << checked.error().message;
  return checked ? checked->faults.first() : std::vector<Faults::Fault>();
}

auto Says(std::string_view kind, std::string_view text) {
  return AllOf(Field(&Faults::Fault::kind, kind),
               Field(&Faults::Fault::text, HasSubstr(std::string(text))));
}

std::string Export(std::string_view format, const trace::Model& model) {
  std::string file;
  const auto written = WriteAs(format, model, [&](std::string_view block) {
    file += block;
    return Result<void>();
  });
  EXPECT_TRUE(written) << written.error().message;
  return file;
}

std::string Replaced(std::string text, std::string_view old, std::string_view with) {
  const size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return at == text.npos ? text : text.replace(at, old.size(), with);
}

std::string Compressed(std::string_view bytes) {
  std::string file;
  const Sink sink = [&](std::string_view block) {
    file += block;
    return Result<void>();
  };
  GzipStream gzip(sink);
  EXPECT_TRUE(gzip.Write(bytes) && gzip.Finish());
  return file;
}

TEST(CheckExport, WhatWeWriteIsSound) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed});
    for (const std::string& format : FormatNames()) {
      SCOPED_TRACE(fmt::format("{} {}", format, seed));
      const auto checked = Check(Export(format, model));
      ASSERT_TRUE(checked) << checked.error().message;
      ASSERT_EQ(checked->faults.count(), 0u) << checked->faults.first().front().text;
      EXPECT_EQ(format, std::string(checked->kind) + (checked->compressed ? ".gz" : ""));
      if (checked->kind == "trace.json") {
        EXPECT_THAT(checked->counts, ElementsAre(Pair("launch", model.launches.size()),
                                                 Pair("warp", model.warps.size()),
                                                 Pair("range", model.ranges.size()),
                                                 Pair("marker", model.marks.event.size())));
      } else if (checked->kind == "chrome.json") {
        EXPECT_THAT(checked->counts,
                    Contains(Pair("slice", model.launches.size() + model.warps.size() +
                                               model.ranges.size())));
      } else if (checked->kind == "html") {
        EXPECT_THAT(
            checked->counts,
            ElementsAre(Pair("launch", model.launches.size()), Pair("warp", model.warps.size()),
                        Pair("range", model.ranges.size()), Pair("marker", model.marks.size())));
      } else if (checked->kind == "csv" || checked->kind == "sqlite") {
        EXPECT_THAT(
            checked->counts,
            ElementsAre(Pair("launch", model.launches.size()), Pair("warp", model.warps.size()),
                        Pair("range", model.ranges.size()),
                        Pair("marker", model.marks.size() + model.unmatched_ends.size())));
      } else {
        EXPECT_THAT(checked->counts, Contains(Pair("event", testing::Gt(model.ranges.size() * 2))));
      }
    }
  }
}

TEST(CheckExport, NeitherKind) {
  for (const char* text : {"text", "[1]",
                           "\x7f"
                           "ELF"}) {
    const auto checked = Check(text);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(checked.error().message, HasSubstr("test: neither a Perfetto trace nor JSON"));
  }
}

// A trace made packet by packet.
class Pftrace {
 public:
  Pftrace() { Head(1); }

  // State of a sequence: clock 64, two names.
  void Head(uint32_t sequence) {
    auto packet = writer_.Message(perfetto::Trace::kPacket);
    writer_.Varint(perfetto::TracePacket::kSequenceId, sequence);
    writer_.Varint(perfetto::TracePacket::kSequenceFlags, perfetto::TracePacket::kStateCleared);
    {
      auto snapshot = writer_.Message(perfetto::TracePacket::kClockSnapshot);
      auto clock = writer_.Message(perfetto::ClockSnapshot::kClocks);
      writer_.Varint(perfetto::Clock::kClockId, 64);
      writer_.Varint(perfetto::Clock::kTimestamp, 1000);
      writer_.Varint(perfetto::Clock::kIsIncremental, 1);
    }
    auto interned = writer_.Message(perfetto::TracePacket::kInternedData);
    for (uint64_t iid : {1, 2}) {
      auto name = writer_.Message(perfetto::InternedData::kEventNames);
      writer_.Varint(perfetto::InternedName::kIid, iid);
      writer_.Text(perfetto::InternedName::kName, "name");
    }
  }
  void Track(uint64_t uuid, uint64_t parent = 0) {
    auto packet = writer_.Message(perfetto::Trace::kPacket);
    auto track = writer_.Message(perfetto::TracePacket::kTrackDescriptor);
    writer_.Varint(perfetto::TrackDescriptor::kUuid, uuid);
    if (parent != 0) writer_.Varint(perfetto::TrackDescriptor::kParentUuid, parent);
  }
  struct Event {
    uint64_t type = perfetto::TrackEvent::kInstant;
    uint64_t track = 7;
    uint64_t name = 1;
    uint64_t time = 0;
    uint64_t clock = 64;
    uint32_t sequence = 1;
  };
  void Add(const Event& event) {
    auto packet = writer_.Message(perfetto::Trace::kPacket);
    writer_.Varint(perfetto::TracePacket::kTimestamp, event.time);
    writer_.Varint(perfetto::TracePacketDefaults::kTimestampClockId, event.clock);
    writer_.Varint(perfetto::TracePacket::kSequenceId, event.sequence);
    writer_.Varint(perfetto::TracePacket::kSequenceFlags, perfetto::TracePacket::kNeedsState);
    auto body = writer_.Message(perfetto::TracePacket::kTrackEvent);
    writer_.Varint(perfetto::TrackEvent::kType, event.type);
    writer_.Varint(perfetto::TrackEvent::kTrackUuid, event.track);
    if (event.name != 0) writer_.Varint(perfetto::TrackEvent::kNameIid, event.name);
  }
  std::string bytes() const { return std::string(writer_.bytes()); }

 private:
  ProtoWriter writer_;
};

constexpr uint64_t kBegin = perfetto::TrackEvent::kSliceBegin;
constexpr uint64_t kEnd = perfetto::TrackEvent::kSliceEnd;

TEST(CheckPftrace, SoundByHand) {
  Pftrace trace;
  trace.Track(7, 8);
  trace.Track(8);  // a parent may come later
  trace.Add({.type = kBegin});
  trace.Add({.type = kBegin, .name = 2, .time = 5});
  trace.Add({.type = kEnd, .name = 0});
  trace.Add({.type = kEnd, .name = 0});
  EXPECT_THAT(FaultsOf(trace.bytes()), IsEmpty());
}

TEST(CheckPftrace, Tracks) {
  Pftrace trace;
  const size_t offset = trace.bytes().size();
  trace.Add({.track = 9});
  trace.Track(7, 5);
  const auto faults = FaultsOf(trace.bytes());
  EXPECT_THAT(faults, ElementsAre(Says("track", "an event on track 9, which is not declared"),
                                  Says("track", "track 5 is somebody's parent")));
  EXPECT_EQ(faults[0].offset, offset);
}

TEST(CheckPftrace, Slices) {
  Pftrace trace;
  trace.Track(7);
  trace.Add({.type = kEnd});
  const size_t offset = trace.bytes().size();
  trace.Add({.type = kBegin});
  const auto faults = FaultsOf(trace.bytes());
  EXPECT_THAT(faults, ElementsAre(Says("slice", "a slice of track 7 ends that did not begin"),
                                  Says("slice", "a slice of track 7 never ends")));
  EXPECT_EQ(faults[1].offset, offset);
}

TEST(CheckPftrace, NamesAndState) {
  Pftrace trace;
  trace.Track(7);
  trace.Add({.name = 3});
  trace.Head(2);
  trace.Add({.sequence = 2});
  trace.Add({.time = 1, .clock = 6, .sequence = 3});
  EXPECT_THAT(FaultsOf(trace.bytes()),
              ElementsAre(Says("name", "the event name 3 was not interned before"),
                          Says("sequence", "a packet of sequence 3 needs a state"),
                          Says("name", "the event name 1")));
}

TEST(CheckPftrace, Time) {
  Pftrace trace;
  trace.Track(7);
  trace.Add({.time = 5, .clock = 6});
  trace.Add({.time = 4, .clock = 6});
  trace.Track(8);
  trace.Add({.track = 8, .time = 3, .clock = 6});  // other tracks may come later in the file
  trace.Add({.time = ~uint64_t{0} - 3});           // -4
  trace.Add({.clock = 65});
  EXPECT_THAT(FaultsOf(trace.bytes()),
              ElementsAre(Says("time", "time runs backwards on track 7: 4 after 5"),
                          Says("time", "time runs backwards in sequence 1"),
                          Says("time", "clock 65 of sequence 1 was not set before")));
}

TEST(CheckPftrace, PacketsThatAreNotWhole) {
  Pftrace trace;
  const std::string whole = trace.bytes();
  EXPECT_THAT(FaultsOf(whole + "x"), ElementsAre(Says("packet", "no packet begins here")));
  EXPECT_EQ(FaultsOf(whole + "x")[0].offset, whole.size());
  EXPECT_THAT(FaultsOf(whole + "\x0a\xff\xff\xff\xff\x7f"),
              ElementsAre(Says("packet", "a length that cannot be right")));
  EXPECT_THAT(FaultsOf(whole + std::string(2, '\x0a') + std::string(20, '\xff')),
              ElementsAre(Says("packet", "a packet in which a field is not whole"),
                          Says("packet", "no packet begins here")));
  // Cut anywhere but between packets.
  Pftrace longer;
  longer.Track(7);
  const std::string two = longer.bytes();
  for (size_t size = 1; size < two.size(); ++size) {
    const auto faults = FaultsOf(two.substr(0, size));
    if (size == whole.size()) {
      EXPECT_THAT(faults, IsEmpty());
    } else {
      EXPECT_THAT(faults, ElementsAre(Says("cut", "the last packet is cut"))) << size;
    }
  }
}

TEST(CheckTraceJson, LooksIntoLaunchesOfGraphs) {
  trace::Model model = MakeSyntheticModel({});
  model.launches[0].graph = 1;
  model.launches[0].replay = 7;
  const std::string sound = Export("trace.json", model);
  EXPECT_THAT(FaultsOf(sound), IsEmpty());
  const auto damaged = [&](std::string_view old, std::string_view with) {
    return FaultsOf(Replaced(sound, old, with));
  };
  // Launches of graphs are the first ones of the file.
  EXPECT_THAT(damaged("\"gridId\"", "\"gridID\""),
              ElementsAre(Says("key", "a launch lacks gridId")));
  EXPECT_THAT(damaged("\"graphLaunches\":{", "\"graphLaunches\":{\"graph_exec_0:0\":1,"),
              ElementsAre(Says("type", "a number where a replay stands")));
}

TEST(CheckTraceJson, KeysAndTypes) {
  const std::string sound = Export("trace.json", MakeSyntheticModel({}));
  const auto damaged = [&](std::string_view old, std::string_view with) {
    return FaultsOf(Replaced(sound, old, with));
  };
  EXPECT_THAT(damaged("\"gridId\"", "\"gridID\""),
              ElementsAre(Says("key", "a launch lacks gridId")));
  EXPECT_THAT(damaged("\"graphLaunches\":{}", "\"graphLaunches\":[]"),
              ElementsAre(Says("type", "an array where graphLaunches stands")));
  EXPECT_THAT(damaged("\"x\":1", "\"x\":1.5"),
              ElementsAre(Says("type", "a number with a fraction where x stands")));
  EXPECT_THAT(damaged("\"x\":1", "\"x\":null"), ElementsAre(Says("type", "null where x stands")));
  EXPECT_THAT(damaged("\"x\":1", "\"x\":1,\"x\":1"),
              ElementsAre(Says("key", "enabledCluster has x twice")));
  EXPECT_THAT(damaged("\"x\":1", "\"new\":{\"locIdx\":\"?\"},\"x\":1"), IsEmpty());
  EXPECT_THAT(damaged("\"version\":1", "\"version\":2"),
              ElementsAre(Says("version", "version 2 of the schema")));
  EXPECT_THAT(damaged("\"locIdx\":0", "\"locIdx\":-1"), ElementsAre(Says("row", "row -1")));
  EXPECT_THAT(damaged("\"locIdx\":0", "\"locIdx\":4000000000"),
              ElementsAre(Says("row", "row 4000000000 of locationTable, which has")));
  EXPECT_THAT(damaged("\"rangeNameIdx\":", "\"rangeNameIdx\":99"),
              ElementsAre(Says("row", " of stringTable, which has")));
  EXPECT_THAT(damaged("\"endTs\":", "\"endTs\":-"), ElementsAre(Says("time", "a range ends at -")));
  EXPECT_THAT(damaged("\"ctaId\":[", "\"ctaId\":[1,"), ElementsAre(Says("length", "ctaId has 4")));
  EXPECT_THAT(damaged("\"warpLocIdxs\":[", "\"warpLocIdxs\":[0,"),
              ElementsAre(Says("length", "warpLocIdxs has 3, not two elements")));
  EXPECT_THAT(damaged("\"internalEvents\":[", "\"internalEvents\":[],\"other\":["),
              ElementsAre(Says("length", "an internal event has 0")));
  EXPECT_THAT(damaged("\"payloadVal\"", "\"payload\""),
              ElementsAre(Says("key", "one of payloadType and payloadVal alone")));
}

TEST(CheckTraceJson, SyntaxAndWhereItBreaks) {
  const auto offset_of = [](const std::string& text) {
    const auto faults = FaultsOf(text);
    EXPECT_FALSE(faults.empty()) << text;
    EXPECT_EQ(faults.back().kind, "json") << text;
    return faults.back().offset;
  };
  EXPECT_EQ(offset_of("{"), 1u);
  EXPECT_EQ(offset_of("{\"a\":1,}"), 8u);
  EXPECT_EQ(offset_of("{\"a\":\"\xff\"}"), 7u);
  EXPECT_GE(offset_of("{} {"), 3u);
  EXPECT_GE(offset_of("{\"a\":" + std::string(100, '[')), 60u);
  EXPECT_THAT(FaultsOf("{\"a\":1,}"), Contains(Says("json", "not JSON: while parsing object key")));
  // Cut at every byte.
  const std::string sound = Export("trace.json", MakeSyntheticModel({.launches = 1, .ctas = 1}));
  for (size_t size = 1; size < sound.size(); ++size) {
    const auto faults = FaultsOf(sound.substr(0, size));
    ASSERT_THAT(faults, Contains(Says("json", "not JSON: "))) << size;
    ASSERT_EQ(faults.back().offset, size);
  }
}

TEST(CheckExport, DamagedGzip) {
  for (const char* format : {"pftrace.gz", "trace.json.gz"}) {
    SCOPED_TRACE(format);
    const std::string sound = Export(format, MakeSyntheticModel({}));
    // What follows from damage is not said: the end of the trace is missing in all of these.
    const auto only = [&](const std::string& file, std::string_view text) {
      const auto faults = FaultsOf(file);
      EXPECT_THAT(faults, ElementsAre(Says("gzip", text)));
      return faults.empty() ? 0 : faults.front().offset;
    };
    const size_t half = sound.size() / 2;
    EXPECT_EQ(only(sound.substr(0, half), "cut: the gzip member that begins at byte 0"), half);
    std::string flipped = sound;
    flipped[half] = static_cast<char>(flipped[half] ^ 1);
    const uint64_t at = only(flipped, "in the gzip member that begins at byte 0");
    EXPECT_GE(at, half);
    EXPECT_LE(at, sound.size());
    only(sound + sound.substr(0, half),
         fmt::format("the gzip member that begins at byte {}", sound.size()));
    EXPECT_EQ(only(sound + "x", "bytes that are no gzip member"), sound.size());
    flipped = sound;
    flipped[0] = 'x';
    const auto checked = CheckExport(std::as_bytes(std::span(flipped)), std::string("a.") + format);
    ASSERT_TRUE(checked);
    EXPECT_EQ(std::string(checked->kind) + ".gz", format);
    EXPECT_THAT(checked->faults.first(), ElementsAre(Says("gzip", "does not begin as gzip")));
  }
}

TEST(CheckExport, EmptyFiles) {
  for (const std::string& file : {std::string(), Compressed("")}) {
    EXPECT_THAT(FaultsOf(file), ElementsAre(Says("empty", "nothing is in it")));
  }
}

TEST(CheckExport, OfASoftwareDevice) {
  for (const bool simulated : {false, true}) {
    trace::Model model = MakeSyntheticModel({});
    model.devices.at(0).simulated = simulated;
    for (const std::string& format : FormatNames()) {
      const auto checked = Check(Export(format, model));
      ASSERT_TRUE(checked);
      EXPECT_EQ(checked->simulated, simulated) << format;
      EXPECT_EQ(checked->faults.count(), 0u);
    }
  }
}

TEST(CheckExport, ManyFaultsAreCountedAndFewKept) {
  Pftrace trace;
  trace.Track(7);
  for (int i = 0; i < 1000; ++i) trace.Add({.type = kEnd});
  const auto checked = Check(trace.bytes());
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->faults.count(), 1000u);
  EXPECT_EQ(checked->faults.first().size(), Faults::kMostFaults);
}

TEST(CheckExport, AFlippedBitNeverHarmsTheReader) {
  std::mt19937_64 random(5);
  for (const std::string& format : FormatNames()) {
    const std::string sound = Export(format, MakeSyntheticModel({}));
    for (int i = 0; i < 500; ++i) {
      std::string file = sound;
      char& byte = file[random() % file.size()];
      byte = static_cast<char>(byte ^ 1 << random() % 8);
      (void)Check(file);
    }
  }
}

}  // namespace
}  // namespace iket::exporter
