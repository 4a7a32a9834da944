#include "foreign/raw_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "capture/content.h"

namespace iket::foreign {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMostEventId = 4095;
constexpr uint32_t kMostSms = 4096;
constexpr size_t kMostLaunches = size_t{1} << 28;

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes values out of objects. The first that is not what it must be is remembered, and all that
// follow are empty: whoever reads asks once, at the end.
class Values {
 public:
  const std::string& fault() const { return fault_; }
  bool ok() const { return fault_.empty(); }

  void Add(std::string fault) {
    if (ok()) fault_ = std::move(fault);
  }

  // Null, remembered, where it is missing or of another type.
  const Json& Of(const Json& object, const char* key, Json::value_t type) {
    static const Json kNothing;
    if (!ok()) return kNothing;
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found == object.end()) {
      Add(fmt::format("{} has no {}", where, key));
      return kNothing;
    }
    if (found->type() != type) {
      Add(fmt::format("{} of {} is {}", key, where, found->type_name()));
      return kNothing;
    }
    return *found;
  }
  const Json& Object(const Json& object, const char* key) {
    return Of(object, key, Json::value_t::object);
  }
  const Json& Array(const Json& object, const char* key) {
    return Of(object, key, Json::value_t::array);
  }
  std::string String(const Json& object, const char* key) {
    const Json& value = Of(object, key, Json::value_t::string);
    return ok() ? value.get_ref<const std::string&>() : std::string();
  }
  bool Truth(const Json& object, const char* key) {
    const Json& value = Of(object, key, Json::value_t::boolean);
    return ok() && value.get<bool>();
  }
  uint64_t Number(const Json& object, const char* key,
                  uint64_t most = std::numeric_limits<uint32_t>::max()) {
    const Json& value = Of(object, key, Json::value_t::number_unsigned);
    if (!ok()) return 0;
    const auto number = value.get<uint64_t>();
    if (number <= most) return number;
    Add(fmt::format("{} of {} is {}, more than {}", key, where, number, most));
    return 0;
  }
  uint32_t U32(const Json& object, const char* key,
               uint32_t most = std::numeric_limits<uint32_t>::max()) {
    return static_cast<uint32_t>(Number(object, key, most));
  }
  // -1 where it is not known.
  int32_t Place(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found != object.end() && found->is_number_integer() && !found->is_number_unsigned()) {
      return -1;
    }
    return static_cast<int32_t>(U32(object, key, std::numeric_limits<int32_t>::max()));
  }
  std::array<uint32_t, 3> Xyz(const Json& object, const char* key) {
    const Json& value = Object(object, key);
    return {U32(value, "x"), U32(value, "y"), U32(value, "z")};
  }

  std::string where = "the file";  // what is read, for messages

 private:
  std::string fault_;
};

bool IsKnownPayload(uint32_t type) {
  using capture::PayloadType;
  const auto in = [&](PayloadType first, PayloadType last) {
    return type >= static_cast<uint32_t>(first) && type <= static_cast<uint32_t>(last);
  };
  return in(PayloadType::kNone, PayloadType::kI64) || in(PayloadType::kF32, PayloadType::kU64);
}

RawEvent EventOf(Values& values, const Json& json) {
  RawEvent event{.id = values.U32(json, "eventId", kMostEventId),
                 .name = values.String(json, "eventName"),
                 .position = static_cast<Position>(values.U32(
                     json, "eventPosition", static_cast<uint32_t>(Position::kRangeStartEnd))),
                 .range = values.U32(json, "rangeId")};
  const uint32_t method =
      values.U32(json, "instrumentMethod", static_cast<uint32_t>(Method::kExtendedNativeDump));
  event.method = method < static_cast<uint32_t>(Method::kNativeDump) ? Method::kNativeDump
                                                                     : static_cast<Method>(method);
  const uint32_t payload = values.U32(json, "payloadType");
  if (!IsKnownPayload(payload)) {
    values.Add(fmt::format("event {} has payloadType {}, which is not known", event.name, payload));
  }
  event.payload = static_cast<uint8_t>(payload);
  return event;
}

RawContext ModuleOf(Values& values, const std::string& name, const Json& json) {
  values.where = fmt::format("decodeContexts[{}]", name);
  RawContext module{.architecture = values.U32(json, "architecture")};
  for (const Json& event : values.Array(json, "events")) {
    values.where = fmt::format("an event of decodeContexts[{}]", name);
    module.events.push_back(EventOf(values, event));
  }
  for (const Json& range : values.Array(json, "ranges")) {
    values.where = fmt::format("a range of decodeContexts[{}]", name);
    module.ranges.push_back({.id = values.U32(range, "rangeId"),
                             .name = values.String(range, "rangeName"),
                             .colour = values.U32(range, "color")});
  }
  for (const Json& kernel : values.Array(json, "kernels")) {
    values.where = fmt::format("a kernel of decodeContexts[{}]", name);
    module.kernels[values.String(kernel, "kernelName")] = {
        .max_payload_bytes = values.U32(kernel, "maxPayloadSize", 8),
        .sites = static_cast<uint32_t>(values.Array(kernel, "instrumentPoints").size())};
  }
  return module;
}

// Whether the launch's buffers can be read here is looked at only if it has any.
void ReadBuffers(Values& values, const std::map<std::string, uint32_t>& modules, const Json& json,
                 RawLaunch& launch) {
  const std::string id = values.String(json, "decodeContextId");
  const auto module = modules.find(id);
  if (values.ok() && module == modules.end()) {
    values.Add(
        fmt::format("{} refers to decodeContexts[{}], which is not there", values.where, id));
  }
  launch.module = values.ok() ? module->second : 0;
  launch.warp_bytes = values.U32(json, "warpBufferSize");
  const Json& data = values.Object(json, "dataRef");
  launch.file = values.String(data, "filename");
  launch.offset = values.Number(data, "offset", std::numeric_limits<uint64_t>::max());
  launch.bytes = values.Number(data, "size", std::numeric_limits<uint64_t>::max());
  if (values.ok() && launch.file.find('/') != std::string::npos) {
    values.Add(
        fmt::format("{} has its buffers in {}, outside of this folder", values.where, launch.file));
  }
  const Json& options = values.Object(json, "patchOptions");
  if (const uint32_t timer = values.U32(options, "timerSource"); timer != 0) {
    values.Add(
        fmt::format("{} has timerSource {}; only 0, %globaltimer, is known", values.where, timer));
  }
}

RawLaunch LaunchOf(Values& values, const std::map<std::string, uint32_t>& modules,
                   const Json& json) {
  RawLaunch launch{.kernel = values.String(json, "kernelName"),
                   .context = values.U32(json, "contextId"),
                   .grid_id = values.U32(json, "gridId"),
                   .grid = {values.U32(json, "gridDimX"), values.U32(json, "gridDimY"),
                            values.U32(json, "gridDimZ")},
                   .block = {values.U32(json, "blockDimX"), values.U32(json, "blockDimY"),
                             values.U32(json, "blockDimZ")},
                   .cluster = values.Xyz(json, "clusterDim"),
                   .recorded = values.Truth(json, "canDecode")};
  if (values.U32(json, "singleClusterActive") != 0) {
    launch.only_cluster = values.Xyz(json, "enabledCluster");
  }
  if (launch.recorded) ReadBuffers(values, modules, json, launch);
  return launch;
}

// "graph_exec_1:0": executable graph and replay.
std::optional<std::array<uint32_t, 2>> ReplayOf(std::string_view key) {
  constexpr std::string_view kHead = "graph_exec_";
  if (!key.starts_with(kHead)) return std::nullopt;
  key.remove_prefix(kHead.size());
  std::array<uint32_t, 2> numbers{};
  const char* const begin = key.data();  // NOLINT(bugprone-suspicious-stringview-data-usage)
  const char* const end = begin + key.size();
  const auto graph = std::from_chars(begin, end, numbers[0]);
  if (graph.ec != std::errc() || graph.ptr == end || *graph.ptr != ':') return std::nullopt;
  const auto replay = std::from_chars(graph.ptr + 1, end, numbers[1]);
  if (replay.ec != std::errc() || replay.ptr != end) return std::nullopt;
  return numbers;
}

void ReadLaunches(Values& values, const std::map<std::string, uint32_t>& modules, const Json& json,
                  RawRun& run) {
  size_t number = 0;
  for (const Json& launch : values.Array(json, "launches")) {
    values.where = fmt::format("launch {}", number++);
    run.launches.push_back(LaunchOf(values, modules, launch));
  }
  values.where = "the file";
  for (const auto& [key, launches] : values.Object(json, "graphLaunches").items()) {
    values.where = fmt::format("graphLaunches[{}]", key);
    const auto replay = ReplayOf(key);
    if (!replay || !launches.is_array()) {
      values.Add(fmt::format("{} is not the list of launches of a graph's replay", values.where));
      return;
    }
    for (const Json& launch : launches) {
      run.launches.push_back(LaunchOf(values, modules, launch));
      run.launches.back().replay = replay;
    }
  }
  if (run.launches.size() > kMostLaunches) values.Add("it has too many launches");
}

void ReadTopology(Values& values, const Json& json, RawRun& run) {
  values.where = "the file";
  for (const Json& context : values.Array(json, "topology")) {
    values.where = "an entry of topology";
    std::vector<RawSm>& sms = run.topology[values.U32(context, "contextId")];
    for (const Json& sm : values.Array(context, "sms")) {
      sms.push_back({.sm = values.U32(sm, "smId", kMostSms - 1),
                     .tpc = values.Place(sm, "tpcId"),
                     .gpc = values.Place(sm, "gpcId")});
    }
  }
}

}  // namespace

bool LooksLikeRawRun(std::span<const std::byte> untrusted) {
  // Its keys are sorted, so this one comes first; a few more bytes are for who wrote it anew.
  constexpr size_t kLookedAt = 4096;
  const std::string_view head = Text(untrusted.first(std::min(untrusted.size(), kLookedAt)));
  const size_t brace = head.find_first_not_of(" \t\r\n");
  return brace != head.npos && head[brace] == '{' && head.find("\"decodeContexts\"") != head.npos;
}

Result<RawRun> ParseRawRun(std::span<const std::byte> untrusted, const std::string& name) {
  const std::string_view text = Text(untrusted);
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Fail(ErrorKind::kBadInput, "{}: no JSON, or cut: run-iket was interrupted?", name);
  }
  RawRun run;
  Values values;
  const uint32_t version = values.U32(values.Object(json, "meta"), "version");
  if (values.ok() && version != 1) {
    values.Add(fmt::format("it is of version {}; 1 is known, of run-iket 4.8", version));
  }
  std::map<std::string, uint32_t> modules;
  for (const auto& [id, context] : values.Object(json, "decodeContexts").items()) {
    modules[id] = static_cast<uint32_t>(run.modules.size());
    run.modules.push_back(ModuleOf(values, id, context));
  }
  values.where = "the file";
  ReadLaunches(values, modules, json, run);
  ReadTopology(values, json, run);
  if (!values.ok()) {
    return Fail(ErrorKind::kBadInput, "{}: not as run-iket writes it: {}", name, values.fault());
  }
  return run;
}

}  // namespace iket::foreign
