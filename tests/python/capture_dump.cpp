// capture_dump: what the C++ reader makes of captures, as iketcap.py --json says it: one line of
// JSON a file. For iketcap_test.py, which compares the two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capture/reader.h"

namespace iket::capture {
namespace {

// Length of the UTF-8 sequence at the start of `text`; 0 if there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool above = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || above ? 0 : length;
}

std::string Json(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<uint8_t>(text[0]);
    const size_t length = Utf8Length(text);
    if (length == 0) {
      json += fmt::format("\\\\x{:02x}", byte);
    } else if (byte < 0x20 || byte == '"' || byte == '\\') {
      json += fmt::format("\\u{:04x}", byte);
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return json + "\"";
}

std::string Json(const std::string& text) { return Json(std::string_view(text)); }
std::string Json(bool value) { return value ? "true" : "false"; }
template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>)
std::string Json(T value) {
  if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<unsigned>(value));
  } else {
    return fmt::format("{}", value);
  }
}
std::string Json(const Dim3& size) { return fmt::format("[{},{},{}]", size.x, size.y, size.z); }
std::string Json(const std::array<uint32_t, 3>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}
std::string Json(const SmPlace& place) { return fmt::format("[{},{}]", place.tpc, place.gpc); }
std::string Json(const ring::Record& record) {
  return fmt::format("[{},{},{},{}]", record.clock, record.tag, record.low, record.high);
}
std::string Json(const ring::RingHeader& header) {
  uint32_t words[sizeof(header) / 4];
  std::memcpy(words, &header, sizeof(header));
  return fmt::format("[{}]", fmt::join(words, ","));
}

template <typename Rows, typename Write>
std::string List(const Rows& rows, Write write) {
  std::string json;
  for (const auto& row : rows) json += fmt::format("{}{}", json.empty() ? "" : ",", write(row));
  return fmt::format("[{}]", json);
}

template <typename T>
std::string Json(const std::vector<T>& rows) {
  return List(rows, [](const T& row) { return Json(row); });
}

class Object {
 public:
  template <typename T>
  Object& Field(std::string_view name, const T& value) {
    return Put(name, Json(value));
  }
  Object& Put(std::string_view name, const std::string& json) {
    json_ += fmt::format("{}\"{}\":{}", json_.empty() ? "" : ",", name, json);
    return *this;
  }
  std::string End() const { return fmt::format("{{{}}}", json_); }

 private:
  std::string json_;
};

// The member and its name.
#define FIELD(member) Field(#member, row.member)

std::string Write(const Session& row) {
  return Object()
      .FIELD(index)
      .FIELD(ended)
      .FIELD(software_device)
      .FIELD(pid)
      .FIELD(exit_status)
      .FIELD(signal)
      .FIELD(tool_version)
      .FIELD(command_line)
      .FIELD(host)
      .FIELD(working_directory)
      .FIELD(start_realtime_ns)
      .FIELD(start_ns)
      .FIELD(end_realtime_ns)
      .FIELD(end_ns)
      .End();
}
std::string Write(const Device& row) {
  std::string uuid;
  for (uint8_t byte : row.uuid) uuid += fmt::format("{:02x}", byte);
  return Object()
      .FIELD(index)
      .FIELD(simulated)
      .Field("uuid", uuid)
      .FIELD(name)
      .FIELD(compute_major)
      .FIELD(compute_minor)
      .FIELD(sm_count)
      .FIELD(sm_clock_max_khz)
      .FIELD(sm_clock_khz)
      .FIELD(cuda_version)
      .FIELD(driver_version)
      .FIELD(memory_bytes)
      .FIELD(topology)
      .End();
}
std::string Write(const Image& row) {
  return Object()
      .FIELD(index)
      .FIELD(sm)
      .FIELD(hash)
      .FIELD(bytes)
      .FIELD(marked_functions)
      .FIELD(source)
      .End();
}
std::string Write(const Kernel& row) {
  return Object()
      .FIELD(index)
      .FIELD(image)
      .FIELD(mangled_name)
      .FIELD(demangled_name)
      .FIELD(state)
      .FIELD(refusal)
      .FIELD(registers_before)
      .FIELD(registers_after)
      .FIELD(sites)
      .FIELD(sites_refused)
      .FIELD(static_shared_bytes)
      .FIELD(sites_left_out)
      .End();
}
std::string Write(const Declaration& row) {
  return Object()
      .FIELD(image)
      .FIELD(event)
      .FIELD(kind)
      .FIELD(payload)
      .FIELD(name)
      .FIELD(colour)
      .FIELD(file)
      .FIELD(line)
      .FIELD(left_out)
      .End();
}
std::string Write(const Attribute& row) {
  return Object()
      .FIELD(image)
      .FIELD(event)
      .FIELD(position)
      .FIELD(what)
      .FIELD(number)
      .FIELD(text)
      .End();
}
std::string Write(const DeclaredEdge& row) {
  return Object().FIELD(image).FIELD(dag).FIELD(from).FIELD(to).FIELD(label).FIELD(via).End();
}
std::string Write(const KernelFilter& row) {
  return Object()
      .FIELD(kernel)
      .FIELD(by_cluster)
      .FIELD(by_sm)
      .FIELD(cluster)
      .FIELD(sample)
      .FIELD(cluster_ctas)
      .End();
}
std::string Write(const Context& row) {
  return Object()
      .FIELD(index)
      .FIELD(device)
      .FIELD(ring_bytes)
      .FIELD(slots_per_sm)
      .FIELD(sm_count)
      .FIELD(device_memory_bytes)
      .FIELD(sink_only)
      .FIELD(in_process_drain)
      .FIELD(in_host)
      .FIELD(recording_version)
      .End();
}
std::string Write(const Launch& row) {
  return Object()
      .FIELD(sequence)
      .FIELD(stream)
      .FIELD(host_ns)
      .FIELD(kernel)
      .FIELD(context)
      .FIELD(grid)
      .FIELD(block)
      .FIELD(cluster)
      .FIELD(dynamic_shared_bytes)
      .FIELD(cooperative)
      .FIELD(graph)
      .FIELD(failed)
      .FIELD(left_out)
      .End();
}
std::string Write(const GraphNode& row) {
  return Object()
      .FIELD(graph)
      .FIELD(node)
      .FIELD(since)
      .FIELD(kernel)
      .FIELD(grid)
      .FIELD(block)
      .FIELD(cluster)
      .FIELD(dynamic_shared_bytes)
      .FIELD(cooperative)
      .FIELD(ordered)
      .FIELD(disabled)
      .FIELD(uncounted)
      .FIELD(conditional)
      .End();
}
std::string Write(const GraphLaunch& row) {
  return Object()
      .FIELD(sequence)
      .FIELD(stream)
      .FIELD(host_ns)
      .FIELD(graph)
      .FIELD(context)
      .FIELD(captured)
      .FIELD(failed)
      .FIELD(left_out)
      .End();
}
std::string Write(const ClockExchange& row) {
  return Object()
      .FIELD(context)
      .FIELD(timer_ns)
      .FIELD(before_ns)
      .FIELD(after_ns)
      .FIELD(realtime_ns)
      .End();
}
std::string Write(const PlacedSm& row) {
  return Object()
      .FIELD(context)
      .FIELD(sm)
      .Field("tpc", row.place.tpc)
      .Field("gpc", row.place.gpc)
      .End();
}
std::string Write(const Counter& row) { return Object().FIELD(name).FIELD(value).End(); }
std::string Write(const Note& row) {
  return Object().FIELD(severity).FIELD(kernel).FIELD(time_ns).FIELD(text).End();
}
std::string Write(const RingRow& row) {
  return Object()
      .FIELD(ring)
      .FIELD(written)
      .FIELD(first)
      .FIELD(header)
      .Put("records", List(row.records, [](const ring::Record& record) { return Json(record); }))
      .End();
}
std::string Write(const RingBlock& block) {
  const RingMoment& row = block.moment;
  return Object()
      .FIELD(context)
      .FIELD(live)
      .Field("last_of_moment", block.last_of_moment)
      .Field("settled", block.moment.settled)
      .Field("moment", row.number)
      .FIELD(begin_ns)
      .Put("rings", List(block.rows, [](const RingRow& ring) { return Write(ring); }))
      .End();
}
std::string Write(const Damage& row) {
  return Object()
      .FIELD(chunks_whole)
      .FIELD(chunks_damaged)
      .FIELD(chunks_unknown)
      .FIELD(chunks_malformed)
      .FIELD(chunks_missing)
      .FIELD(bytes_skipped)
      .FIELD(strings_lost)
      .FIELD(file_header_damaged)
      .FIELD(cut)
      .FIELD(chunks_unwritten)
      .FIELD(bytes_unwritten)
      .End();
}

std::string Dump(const Reader& reader) {
  const Capture& capture = reader.capture();
  std::vector<std::string> blocks;
  const RingWalk walk = reader.ForEachRingBlock([&](const RingBlock& block) {
    blocks.push_back(Write(block));
    return true;
  });
  Damage damage = capture.damage;
  damage.chunks_malformed += walk.blocks_malformed;
  const auto list = [](const auto& rows) {
    return List(rows, [](const auto& row) { return Write(row); });
  };
  return Object()
      .Put("sessions", list(capture.sessions))
      .Put("devices", list(capture.devices))
      .Put("images", list(capture.images))
      .Put("kernels", list(capture.kernels))
      .Put("filters", list(capture.filters))
      .Put("declarations", list(capture.declarations))
      .Put("attributes", list(capture.attributes))
      .Put("edges", list(capture.edges))
      .Put("contexts", list(capture.contexts))
      .Put("exchanges", list(capture.exchanges))
      .Put("placed_sms", list(capture.placed_sms))
      .Put("launches", list(capture.launches))
      .Put("graph_nodes", list(capture.graph_nodes))
      .Put("graph_launches", list(capture.graph_launches))
      .Put("counters", list(capture.counters))
      .Put("notes", list(capture.notes))
      .Put("rings", fmt::format("[{}]", fmt::join(blocks, ",")))
      .Put("damage", Write(damage))
      .End();
}

}  // namespace
}  // namespace iket::capture

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto reader = iket::capture::Reader::Open(argv[i]);
    const std::string line = reader ? iket::capture::Dump(*reader) : "null";
    std::puts(line.c_str());
  }
  return 0;
}
