// capture.h: streams that record a graph instead of running, and how work gets into a stream.
//
// A capture has one origin stream; others join it by waiting for an event that was recorded in it.
// What would need the work to have run (a synchronization, a query, an allocation) is refused while
// a capture is open that forbids it, and makes that capture invalid.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simdriver/context.h"
#include "simdriver/event.h"
#include "simdriver/graph.h"
#include "simdriver/operation.h"

namespace iket::simdriver {

class Capture {
 public:
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Stream> origin;
  std::shared_ptr<Context> context;
  bool into_program_graph = false;  // cuStreamBeginCaptureToGraph
  bool invalid = false;
  // For each stream that takes part, the nodes that its next one depends on.
  std::map<std::shared_ptr<Stream>, std::vector<GraphNode*>> tails;
};

// The work goes into the stream, or into the graph that it captures. `done`, if it is not null,
// becomes what the program may wait for; null when captured.
CUresult Issue(Context& context, CUstream stream, OperationPtr operation,
               std::shared_ptr<Completion>* done = nullptr);
// Issue, and wait for it: for the calls that are over when they return. Refused in a capture.
CUresult IssueAndWait(Context& context, CUstream stream, OperationPtr operation);

// For calls that a capture does not allow. CUDA_SUCCESS if there is none that minds.
CUresult UnsafeDuringCapture();
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and an invalid capture, if this stream is capturing.
CUresult RefuseIfCapturing(const std::shared_ptr<Stream>& stream);

CUstreamCaptureMode ExchangeCaptureMode(CUstreamCaptureMode mode);

CUresult BeginCapture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                      std::shared_ptr<Graph> graph, std::vector<GraphNode*> dependencies);
CUresult EndCapture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* graph);

struct CaptureState {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  CUgraph graph = nullptr;
  std::vector<GraphNode*> dependencies;
};
CaptureState StateOfCapture(const std::shared_ptr<Stream>& stream);
// Replaces the next node's dependencies, or adds to them.
CUresult UpdateCaptureDependencies(const std::shared_ptr<Stream>& stream, bool replace,
                                   const std::vector<GraphNode*>& dependencies);

CUresult RecordEvent(Context& context, CUstream stream, const std::shared_ptr<Event>& event,
                     bool external);
CUresult WaitForEvent(Context& context, CUstream stream, const std::shared_ptr<Event>& event,
                      bool external);

}  // namespace iket::simdriver
