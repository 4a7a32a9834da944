// operation.h: one piece of a stream's work: a launch, a copy, a memset, a host call.
//
// An operation is immutable and knows all that it needs: a stream runs it once, a graph keeps it as
// a node and runs it as often as it is launched. It runs on a worker, after everything that it must
// wait for; what it returns other than CUDA_SUCCESS becomes the context's error for good.
#pragma once

#include <memory>

#include "simdriver/cuda_api.h"

namespace iket::simdriver {

class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  virtual CUgraphNodeType type() const = 0;
  virtual CUresult Run() const = 0;
  // What a stream runs in its place, made when the work is submitted and in that order; null: this
  // one. A graph's nodes run as they are.
  virtual std::shared_ptr<const Operation> Submitted() const { return nullptr; }
  // What an executable graph runs in its place, as often as it is launched; null: this one.
  virtual std::shared_ptr<const Operation> Instantiated() const { return nullptr; }
  // Those that run although the context has failed: what tells the program, or frees something.
  virtual bool runs_after_error() const { return false; }
};
using OperationPtr = std::shared_ptr<const Operation>;

}  // namespace iket::simdriver
