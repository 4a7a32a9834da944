// perfetto_fields.h: the field numbers of Perfetto's trace format that we write.
//
// Facts of a public wire format, one struct a message, in the order of the numbers. Values of enums
// stand under the message that uses them.
#pragma once

#include <cstdint>

namespace iket::exporter::perfetto {

struct Trace {
  static constexpr uint32_t kPacket = 1;
};

struct TracePacket {
  static constexpr uint32_t kClockSnapshot = 6;
  static constexpr uint32_t kTimestamp = 8;
  static constexpr uint32_t kSequenceId = 10;
  static constexpr uint32_t kTrackEvent = 11;
  static constexpr uint32_t kInternedData = 12;
  static constexpr uint32_t kSequenceFlags = 13;
  static constexpr uint32_t kGpuRenderStageEvent = 53;
  static constexpr uint32_t kDefaults = 59;
  static constexpr uint32_t kTrackDescriptor = 60;
  static constexpr uint32_t kFirstPacketOnSequence = 87;
  static constexpr uint32_t kTraceAttributes = 126;

  static constexpr uint32_t kStateCleared = 1;  // of sequence_flags
  static constexpr uint32_t kNeedsState = 2;
};

struct TracePacketDefaults {
  static constexpr uint32_t kTimestampClockId = 58;
};

struct ClockSnapshot {
  static constexpr uint32_t kClocks = 1;

  static constexpr uint32_t kBootTime = 6;        // the trace's own clock
  static constexpr uint32_t kSequenceClock = 64;  // the first of those private to a sequence
};

struct Clock {
  static constexpr uint32_t kClockId = 1;
  static constexpr uint32_t kTimestamp = 2;
  static constexpr uint32_t kIsIncremental = 3;
};

struct TrackDescriptor {
  static constexpr uint32_t kUuid = 1;
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kParentUuid = 5;
  static constexpr uint32_t kCounter = 8;
  static constexpr uint32_t kChildOrdering = 11;
  static constexpr uint32_t kSiblingOrderRank = 12;
  static constexpr uint32_t kDescription = 14;
  static constexpr uint32_t kSiblingMergeBehavior = 15;

  static constexpr uint32_t kExplicitOrder = 3;  // of child_ordering
  static constexpr uint32_t kMergeNone = 2;      // of sibling_merge_behavior
};

struct CounterDescriptor {
  static constexpr uint32_t kUnitName = 6;
};

struct TrackEvent {
  static constexpr uint32_t kCategoryIids = 3;
  static constexpr uint32_t kDebugAnnotations = 4;
  static constexpr uint32_t kType = 9;
  static constexpr uint32_t kNameIid = 10;
  static constexpr uint32_t kTrackUuid = 11;
  static constexpr uint32_t kName = 23;
  static constexpr uint32_t kSourceLocationIid = 34;
  static constexpr uint32_t kDoubleCounterValue = 44;
  static constexpr uint32_t kFlowIds = 47;             // fixed64
  static constexpr uint32_t kTerminatingFlowIds = 48;  // fixed64
  static constexpr uint32_t kCorrelationId = 52;

  static constexpr uint32_t kSliceBegin = 1;  // of type
  static constexpr uint32_t kSliceEnd = 2;
  static constexpr uint32_t kInstant = 3;
  static constexpr uint32_t kCounter = 4;
};

struct DebugAnnotation {
  static constexpr uint32_t kNameIid = 1;
  static constexpr uint32_t kBoolValue = 2;
  static constexpr uint32_t kUintValue = 3;
  static constexpr uint32_t kIntValue = 4;
  static constexpr uint32_t kDoubleValue = 5;
  static constexpr uint32_t kStringValue = 6;
  static constexpr uint32_t kName = 10;
};

struct InternedData {
  static constexpr uint32_t kEventCategories = 1;
  static constexpr uint32_t kEventNames = 2;
  static constexpr uint32_t kDebugAnnotationNames = 3;
  static constexpr uint32_t kSourceLocations = 4;
  static constexpr uint32_t kGraphicsContexts = 23;
  static constexpr uint32_t kGpuSpecifications = 24;
  static constexpr uint32_t kComputeKernels = 1000;
};

// EventName and DebugAnnotationName alike.
struct InternedName {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kName = 2;
};

struct InternedSourceLocation {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kFileName = 2;
  static constexpr uint32_t kLineNumber = 4;
};

struct InternedGraphicsContext {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kPid = 2;
  static constexpr uint32_t kApi = 3;

  static constexpr uint32_t kCuda = 4;
};

struct InternedGpuSpecification {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kDescription = 3;
  static constexpr uint32_t kCategory = 4;

  static constexpr uint32_t kCompute = 2;
};

struct InternedComputeKernel {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kDemangledName = 3;
  static constexpr uint32_t kArch = 4;
};

struct GpuRenderStageEvent {
  static constexpr uint32_t kEventId = 1;
  static constexpr uint32_t kDuration = 2;
  static constexpr uint32_t kContext = 5;
  static constexpr uint32_t kGpuId = 11;
  static constexpr uint32_t kHwQueueIid = 13;
  static constexpr uint32_t kStageIid = 14;
  static constexpr uint32_t kName = 17;
  static constexpr uint32_t kKernelIid = 19;
  static constexpr uint32_t kLaunch = 21;
};

struct ComputeKernelLaunch {
  static constexpr uint32_t kGridSize = 1;
  static constexpr uint32_t kWorkgroupSize = 2;
  static constexpr uint32_t kArgs = 3;
};

struct ComputeArg {
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kUintValue = 4;
  static constexpr uint32_t kStringValue = 6;
};

struct Dim3 {
  static constexpr uint32_t kX = 1;
  static constexpr uint32_t kY = 2;
  static constexpr uint32_t kZ = 3;
};

struct TraceAttributes {
  static constexpr uint32_t kAttribute = 1;
};

struct TraceAttribute {
  static constexpr uint32_t kKey = 1;
  static constexpr uint32_t kLongValue = 2;
  static constexpr uint32_t kStringValue = 3;
};

}  // namespace iket::exporter::perfetto
