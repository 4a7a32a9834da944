// trace_json_schema.h: the objects of a .trace.json and their keys, as run-iket 4.8.1 writes them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace iket::exporter::schema {

enum class Type : uint8_t { kInteger, kText, kTruth, kObject, kArray };

// What an object or an array is; kAny is not looked into.
enum class Node : uint8_t {
  kDocument,
  kTop,
  kGraphLaunches,
  kLaunches,
  kLaunch,
  kCluster,
  kMarkers,
  kMarker,
  kRanges,
  kRange,
  kInternalEvents,
  kInternalEvent,
  kUnclosedRanges,
  kUnclosedRange,
  kOnlyEvents,
  kPlaces,
  kLifetimes,
  kLifetime,
  kLocations,
  kLocation,
  kCta,
  kMeta,
  kIket,
  kStrings,
  kAny,
};

struct Key {
  std::string_view name;
  Type type;
  Node inside = Node::kAny;
  bool required = true;
};

inline constexpr Key kTop[] = {
    {"graphLaunches", Type::kObject, Node::kGraphLaunches},
    {"launches", Type::kArray, Node::kLaunches},
    {"locationTable", Type::kArray, Node::kLocations},
    {"meta", Type::kObject, Node::kMeta},
    {"stringTable", Type::kArray, Node::kStrings},
};
// Its keys are names of replays, "graph_exec_0:3"; this stands for all of them.
inline constexpr Key kReplay[] = {
    {"a replay", Type::kArray, Node::kLaunches, false},
};
inline constexpr Key kLaunch[] = {
    {"blockDimX", Type::kInteger},
    {"blockDimY", Type::kInteger},
    {"blockDimZ", Type::kInteger},
    {"contextId", Type::kInteger},
    {"enabledCluster", Type::kObject, Node::kCluster},
    {"gridDimX", Type::kInteger},
    {"gridDimY", Type::kInteger},
    {"gridDimZ", Type::kInteger},
    {"gridId", Type::kInteger},
    {"kernelName", Type::kText},
    {"markers", Type::kArray, Node::kMarkers},
    {"ranges", Type::kArray, Node::kRanges},
    {"singleClusterActive", Type::kInteger},
    {"warpLifetimes", Type::kArray, Node::kLifetimes},
};
inline constexpr Key kCluster[] = {
    {"x", Type::kInteger},
    {"y", Type::kInteger},
    {"z", Type::kInteger},
};
inline constexpr Key kMarker[] = {
    {"color", Type::kInteger},
    {"locIdx", Type::kInteger},
    {"markerNameIdx", Type::kInteger},
    {"payloadType", Type::kInteger, Node::kAny, false},
    {"payloadVal", Type::kInteger, Node::kAny, false},
    {"timestamp", Type::kInteger},
};
// A range, by what its events are: of a range of ours that nobody closed, the one that opened it.
constexpr std::array<Key, 9> RangeKeys(Node events) {
  return {{
      {"endTs", Type::kInteger},
      {"internalEvents", Type::kArray, events},
      {"rangeColor", Type::kInteger},
      {"rangeId", Type::kInteger},
      {"rangeNameIdx", Type::kInteger},
      {"rangeScope", Type::kInteger},
      {"rangeType", Type::kInteger},
      {"startTs", Type::kInteger},
      {"warpLocIdxs", Type::kArray, Node::kPlaces},
  }};
}
inline constexpr auto kRange = RangeKeys(Node::kInternalEvents);
inline constexpr auto kUnclosedRange = RangeKeys(Node::kOnlyEvents);
inline constexpr Key kInternalEvent[] = {
    {"eventId", Type::kInteger},
    {"payloadType", Type::kInteger, Node::kAny, false},
    {"payloadVal", Type::kInteger, Node::kAny, false},
    {"timestamp", Type::kInteger},
};
inline constexpr Key kLifetime[] = {
    {"endTs", Type::kInteger},
    {"locIdx", Type::kInteger},
    {"startTs", Type::kInteger},
};
inline constexpr Key kLocation[] = {
    {"ctaId", Type::kArray, Node::kCta}, {"gpcId", Type::kInteger},  {"smId", Type::kInteger},
    {"tpcId", Type::kInteger},           {"warpId", Type::kInteger},
};
// What iket adds.
inline constexpr Key kIket[] = {
    {"simulated", Type::kTruth, Node::kAny, false},
    {"unclosedRanges", Type::kArray, Node::kUnclosedRanges, false},
};
inline constexpr Key kMeta[] = {
    {"iket", Type::kObject, Node::kIket, false},
    {"version", Type::kInteger},
};

// The keys of an object; none for arrays, and for what is not looked into.
constexpr std::span<const Key> KeysOf(Node node) {
  switch (node) {
    case Node::kTop:
      return kTop;
    case Node::kGraphLaunches:
      return kReplay;
    case Node::kLaunch:
      return kLaunch;
    case Node::kCluster:
      return kCluster;
    case Node::kMarker:
      return kMarker;
    case Node::kRange:
      return kRange;
    case Node::kUnclosedRange:
      return kUnclosedRange;
    case Node::kInternalEvent:
      return kInternalEvent;
    case Node::kLifetime:
      return kLifetime;
    case Node::kLocation:
      return kLocation;
    case Node::kMeta:
      return kMeta;
    case Node::kIket:
      return kIket;
    default:
      return {};
  }
}

// What an array holds.
struct Element {
  Type type;
  Node inside = Node::kAny;
};
constexpr Element ElementOf(Node array) {
  switch (array) {
    case Node::kDocument:
      return {Type::kObject, Node::kTop};
    case Node::kLaunches:
      return {Type::kObject, Node::kLaunch};
    case Node::kMarkers:
      return {Type::kObject, Node::kMarker};
    case Node::kRanges:
      return {Type::kObject, Node::kRange};
    case Node::kUnclosedRanges:
      return {Type::kObject, Node::kUnclosedRange};
    case Node::kInternalEvents:
    case Node::kOnlyEvents:
      return {Type::kObject, Node::kInternalEvent};
    case Node::kLifetimes:
      return {Type::kObject, Node::kLifetime};
    case Node::kLocations:
      return {Type::kObject, Node::kLocation};
    case Node::kStrings:
      return {Type::kText};
    default:
      return {Type::kInteger};
  }
}

constexpr std::string_view NameOf(Node node) {
  switch (node) {
    case Node::kDocument:
      return "the document";
    case Node::kTop:
      return "the outermost object";
    case Node::kGraphLaunches:
      return "graphLaunches";
    case Node::kLaunches:
    case Node::kLaunch:
      return "a launch";
    case Node::kCluster:
      return "enabledCluster";
    case Node::kMarkers:
    case Node::kMarker:
      return "a marker";
    case Node::kRanges:
    case Node::kRange:
      return "a range";
    case Node::kUnclosedRanges:
    case Node::kUnclosedRange:
      return "an unclosed range";
    case Node::kOnlyEvents:
    case Node::kInternalEvents:
    case Node::kInternalEvent:
      return "an internal event";
    case Node::kPlaces:
      return "warpLocIdxs";
    case Node::kLifetimes:
    case Node::kLifetime:
      return "a warp's lifetime";
    case Node::kLocations:
    case Node::kLocation:
      return "a location";
    case Node::kCta:
      return "ctaId";
    case Node::kMeta:
      return "meta";
    case Node::kIket:
      return "meta.iket";
    case Node::kStrings:
      return "stringTable";
    case Node::kAny:
      break;
  }
  return "a value";
}

}  // namespace iket::exporter::schema
