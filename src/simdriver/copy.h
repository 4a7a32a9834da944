// copy.h: copies and memsets as operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "simdriver/cuda_api.h"
#include "simdriver/operation.h"

namespace iket::simdriver {

// One end of a copy: rows of `width` bytes, `pitch` apart, in slices of `rows` rows.
struct CopySide {
  uint64_t address = 0;  // of the first byte, on the device if on_device, else of the host
  bool on_device = false;
  uint64_t pitch = 0;
  uint64_t rows = 0;
};
struct CopyShape {
  CopySide from, to;
  uint64_t width = 0;  // bytes
  uint64_t height = 1;
  uint64_t depth = 1;
};

class CopyOperation : public Operation {
 public:
  // `held` keeps memory alive that the copy reads.
  explicit CopyOperation(const CopyShape& shape, const CUDA_MEMCPY3D& asked,
                         std::shared_ptr<const void> held = nullptr)
      : shape_(shape), asked_(asked), held_(std::move(held)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  CUresult Run() const override;
  // In the words of the API, for nodes of graphs.
  const CUDA_MEMCPY3D& asked() const { return asked_; }

 private:
  CopyShape shape_;
  CUDA_MEMCPY3D asked_;
  std::shared_ptr<const void> held_;
};

class MemsetOperation : public Operation {
 public:
  explicit MemsetOperation(const CUDA_MEMSET_NODE_PARAMS& params) : params_(params) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
  CUresult Run() const override;
  const CUDA_MEMSET_NODE_PARAMS& params() const { return params_; }

 private:
  CUDA_MEMSET_NODE_PARAMS params_;
};

// Whether all of the range is mapped.
bool IsDeviceRange(uint64_t address, uint64_t bytes);

// Reads and checks what cuMemcpy3D is asked to do. CUDA_ERROR_INVALID_VALUE for device addresses
// that nothing is mapped at, CUDA_ERROR_NOT_SUPPORTED for arrays.
CUresult ShapeOfCopy(const CUDA_MEMCPY3D& asked, CopyShape* shape);
// The same for a memset: addresses, alignment, element size.
CUresult CheckMemset(const CUDA_MEMSET_NODE_PARAMS& params);

// A plain copy of `bytes`, in the words of the API.
CUDA_MEMCPY3D PlainCopy(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
                        size_t bytes);

}  // namespace iket::simdriver
