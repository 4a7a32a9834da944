// raw_run.h: what run-iket says of a run of its own: `iket.data.json`, as plain data.
//
// Its collector leaves a folder a process: this file, which says what each event means and where
// each launch's warp buffers lie, and `iket.data.bin` with those buffers (warp_buffer.h). Known
// from runs of version 4.8.1; of launches by graphs and of a single cluster only what its later
// .trace.json shows is known, and taken to be the same here.
//
// The file is untrusted: what is read is in bounds and of its type, and a name of a file is one of
// this folder. What it says may still contradict itself, and the buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::foreign {

// Where an event stands in a range, by the numbers of the metadata.
enum class Position : uint32_t {
  kNotInRange = 0,
  kRangeStart = 1,
  kRangeEnd = 2,
  kRangeInternal = 3,
  kRangeStartEnd = 4,  // of a token: one id at both ends
};

// How a site records: 1 and 2 (PMTRIG) as 3.
enum class Method : uint32_t { kNativeDump = 3, kUTraceEvent = 4, kExtendedNativeDump = 5 };

struct RawEvent {
  uint32_t id = 0;
  std::string name{};
  Position position = Position::kNotInRange;
  Method method = Method::kNativeDump;
  uint8_t payload = 0;  // capture::PayloadType, one that the metadata knows
  uint32_t range = 0;   // a RawRange's id; 0 none
};

struct RawRange {
  uint32_t id = 0;
  std::string name{};
  uint32_t colour = 0xffffffff;  // that: automatic
};

// What one module declares.
struct RawContext {
  uint32_t architecture = 0;  // 90 for sm_90
  std::vector<RawEvent> events{};
  std::vector<RawRange> ranges{};
  // Of its kernels the bytes of their longest payload: 0, 4 or 8; and how many sites they have.
  struct Kernel {
    uint32_t max_payload_bytes = 0;
    uint32_t sites = 0;
  };
  std::map<std::string, Kernel> kernels{};
};

struct RawLaunch {
  std::string kernel{};
  uint32_t module = 0;  // of RawRun::modules, if it was recorded
  uint32_t context = 0;
  uint32_t grid_id = 0;
  std::array<uint32_t, 3> grid{}, block{};
  std::array<uint32_t, 3> cluster{};  // CTAs; 0 none
  bool recorded = false;
  std::optional<std::array<uint32_t, 3>> only_cluster{};
  std::string file{};
  uint64_t offset = 0, bytes = 0;  // of its warp buffers
  uint32_t warp_bytes = 0;         // of one of them
  // Of a graph: which executable graph, and how many launches of it were before.
  std::optional<std::array<uint32_t, 2>> replay{};
};

struct RawSm {
  uint32_t sm = 0;
  int32_t tpc = -1, gpc = -1;
};

struct RawRun {
  std::vector<RawContext> modules;
  std::vector<RawLaunch> launches;
  std::map<uint32_t, std::vector<RawSm>> topology;  // by context
};

// JSON that has what such a file has, by how it begins.
bool LooksLikeRawRun(std::span<const std::byte> untrusted);

// `name` is for messages. Error (kBadInput): no such file, or one that says what is not known here.
Result<RawRun> ParseRawRun(std::span<const std::byte> untrusted, const std::string& name);

}  // namespace iket::foreign
