// event.h: events: when the work before them was done, on the device's clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simdriver/context.h"
#include "simdriver/graph.h"
#include "simdriver/operation.h"

namespace iket::simdriver {

class Event {
 public:
  // One cuEventRecord.
  struct Record {
    std::shared_ptr<Completion> done;
    std::atomic<uint64_t> time_ns{0};
  };
  // A record in a captured stream: a place in that graph.
  struct Captured {
    std::shared_ptr<Capture> capture;
    std::vector<GraphNode*> nodes;
  };

  Event(unsigned with_flags, uint64_t context) : flags(with_flags), context_id(context) {}
  const unsigned flags;
  const uint64_t context_id;

  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }
  // The latest one; null before the first.
  std::shared_ptr<Record> record() const;
  void SetRecord(std::shared_ptr<Record> record);
  Captured captured() const;
  void SetCaptured(Captured captured);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Record> record_;
  Captured captured_;
};
using Events = HandleTable<Event, CUevent>;

// Takes the time for a record that was made when it was submitted.
class RecordOperation : public Operation {
 public:
  explicit RecordOperation(std::shared_ptr<Event::Record> record) : record_(std::move(record)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
  CUresult Run() const override;
  bool runs_after_error() const override { return true; }

 private:
  std::shared_ptr<Event::Record> record_;
};

// A node that records the event anew whenever its graph runs.
class EventRecordNode : public Operation {
 public:
  explicit EventRecordNode(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
  CUresult Run() const override;
  const std::shared_ptr<Event>& event() const { return event_; }

 private:
  std::shared_ptr<Event> event_;
};

// A node that waits for the event's latest record.
class EventWaitNode : public Operation {
 public:
  explicit EventWaitNode(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
  CUresult Run() const override;
  const std::shared_ptr<Event>& event() const { return event_; }

 private:
  std::shared_ptr<Event> event_;
};

// A call of the program's on the worker.
class HostOperation : public Operation {
 public:
  explicit HostOperation(const CUDA_HOST_NODE_PARAMS& params) : params_(params) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
  CUresult Run() const override;
  const CUDA_HOST_NODE_PARAMS& params() const { return params_; }

 private:
  CUDA_HOST_NODE_PARAMS params_;
};

}  // namespace iket::simdriver
