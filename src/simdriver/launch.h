// launch.h: a launch: what is asked, whether it can run, and running it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/machine.h"
#include "simdriver/module.h"
#include "simdriver/operation.h"

namespace iket::simdriver {

struct LaunchShape {
  sim::Dim3 grid;
  sim::Dim3 block;
  sim::Dim3 cluster{0, 0, 0};  // 0: what the kernel says, else one CTA
  uint32_t dynamic_shared = 0;
  bool cooperative = false;
};

class KernelOperation : public Operation {
 public:
  // Checks the launch and copies the arguments, which come as pointers or as a buffer in `extra`.
  // `handle` is what the program gave, for nodes of graphs.
  static CUresult Make(const Context& context, CUfunction handle, const LaunchShape& shape,
                       void** params, void** extra, std::shared_ptr<const KernelOperation>* made);

  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  // Runs the grid to its end. A fault is said in one line.
  CUresult Run() const override;
  // The launch with its %gridid: they count launches in the order of the program's calls, whatever
  // order the streams run them in. A node takes the next one when its graph is instantiated, or
  // when it is changed there, and has it in all launches of the graph.
  std::shared_ptr<const Operation> Submitted() const override;
  std::shared_ptr<const Operation> Instantiated() const override;

  CUfunction handle() const { return handle_; }
  const LaunchShape& shape() const { return shape_; }
  // One pointer for each parameter, as cuLaunchKernel takes them; they live as long as this.
  void** arguments() const { return const_cast<void**>(pointers_.data()); }
  // The same launch with another shape or other attributes; checked again.
  CUresult WithShape(const LaunchShape& shape, std::shared_ptr<const KernelOperation>* made) const;

 private:
  KernelOperation() = default;
  std::shared_ptr<KernelOperation> Copy() const;
  std::shared_ptr<KernelOperation> Numbered() const;

  CUfunction handle_ = nullptr;
  std::shared_ptr<Limits> limits_;  // of the context
  std::shared_ptr<Function> function_;
  LaunchShape shape_;
  std::vector<std::byte> params_;
  std::vector<void*> pointers_;
  uint64_t grid_id_ = 0;  // 0: none
};

// Threads that a CTA of the kernel may have.
uint32_t MaxThreads(const sim::Kernel& kernel);
// Bytes of dynamic shared memory that a launch may ask for; `setting` is the program's, or -1.
uint32_t MaxDynamicShared(const sim::Kernel& kernel, int setting);

// Reads the attributes of a launch; CUDA_ERROR_NOT_SUPPORTED for one that would change what the
// program computes and that the software device does not have.
CUresult ReadAttributes(const CUlaunchAttribute* attributes, unsigned count, LaunchShape* shape);

}  // namespace iket::simdriver
