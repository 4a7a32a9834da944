#include "simdriver/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "simdriver/device.h"
#include "simdriver/lifetime.h"
#include "simdriver/say.h"

namespace iket::simdriver {
namespace {

std::atomic<uint64_t> g_next_grid{1};

CUresult ErrorOf(const sim::Fault& fault) {
  switch (fault.kind) {
    case sim::Fault::Kind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case sim::Fault::Kind::kMisaligned:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case sim::Fault::Kind::kWrongSpace:
      return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    case sim::Fault::Kind::kStackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case sim::Fault::Kind::kIllegalInstruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case sim::Fault::Kind::kInvalidPc:
      return CUDA_ERROR_INVALID_PC;
    case sim::Fault::Kind::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case sim::Fault::Kind::kAssert:
      return CUDA_ERROR_ASSERT;
    case sim::Fault::Kind::kTimeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case sim::Fault::Kind::kBadLaunch:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case sim::Fault::Kind::kTrap:
    case sim::Fault::Kind::kDeadlock:
    case sim::Fault::Kind::kStopped:
      break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

bool IsEmpty(const sim::Dim3& extent) { return extent.x == 0 || extent.y == 0 || extent.z == 0; }

// The cluster that a launch runs with.
CUresult ResolveCluster(const Function& function, LaunchShape& shape) {
  const sim::Dim3& required = function.kernel->required_cluster;
  sim::Dim3 cluster = shape.cluster;
  bool nonportable = false;
  {
    const std::lock_guard lock(function.settings->mutex);
    const int* set = function.settings->cluster;
    nonportable = function.settings->nonportable_cluster != 0;
    if (cluster.x == 0 && set[0] != 0) {
      cluster = {static_cast<uint32_t>(set[0]), static_cast<uint32_t>(set[1]),
                 static_cast<uint32_t>(set[2])};
    }
  }
  if (required.x != 0) {
    const bool differs = cluster.x != 0 && (cluster.x != required.x || cluster.y != required.y ||
                                            cluster.z != required.z);
    if (differs) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    cluster = required;
  }
  if (cluster.x == 0) cluster = {1, 1, 1};
  if (IsEmpty(cluster) || cluster.x > 16 || cluster.y > 16 || cluster.z > 16 ||
      cluster.count() > (nonportable ? 16u : 8u) || shape.grid.x % cluster.x != 0 ||
      shape.grid.y % cluster.y != 0 || shape.grid.z % cluster.z != 0) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  shape.cluster = cluster;
  return CUDA_SUCCESS;
}

CUresult CheckShape(const Function& function, LaunchShape& shape) {
  const sim::Kernel& kernel = *function.kernel;
  const sim::DeviceModel& model = Model();
  if (IsEmpty(shape.grid) || IsEmpty(shape.block)) return CUDA_ERROR_INVALID_VALUE;
  if (shape.grid.x > 0x7fffffff || shape.grid.y > 65535 || shape.grid.z > 65535 ||
      shape.block.x > 1024 || shape.block.y > 1024 || shape.block.z > 64 ||
      shape.block.count() > model.max_threads_per_cta) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (shape.block.count() > MaxThreads(kernel)) {
    // A kernel's own bound, or too many registers for so many threads.
    return shape.block.count() > kernel.max_threads ? CUDA_ERROR_INVALID_VALUE
                                                    : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  const sim::Dim3& required = kernel.required_block;
  if (required.x != 0 &&
      (required.x != shape.block.x || required.y != shape.block.y || required.z != shape.block.z)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int setting = -1;
  {
    const std::lock_guard lock(function.settings->mutex);
    setting = function.settings->max_dynamic_shared;
  }
  if (shape.dynamic_shared > MaxDynamicShared(kernel, setting)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = ResolveCluster(function, shape); bad != CUDA_SUCCESS) return bad;
  const uint32_t ctas =
      Processors().MaxCtasPerSm(kernel, shape.block.count(), shape.dynamic_shared);
  if (ctas == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (shape.cooperative && shape.grid.count() > uint64_t{ctas} * model.sm_count) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

// The arguments in the layout of the kernel.
CUresult CopyArguments(const sim::Kernel& kernel, void** params, void** extra,
                       std::vector<std::byte>* bytes) {
  bytes->assign(kernel.param_bytes, std::byte{0});
  if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params != nullptr) {
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const sim::KernelParameter& parameter = kernel.params[i];
      if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(bytes->data() + parameter.offset, params[i], parameter.size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) {
    return kernel.params.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** word = extra; *word != CU_LAUNCH_PARAM_END; word += 2) {
    if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = word[1];
    } else if (*word == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const size_t*>(word[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (size > bytes->size() || (size > 0 && buffer == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (size > 0) std::memcpy(bytes->data(), buffer, size);
  return CUDA_SUCCESS;
}

}  // namespace

uint32_t MaxThreads(const sim::Kernel& kernel) {
  const sim::DeviceModel& model = Model();
  uint32_t threads = std::min(kernel.max_threads, model.max_threads_per_cta);
  // As many warps as the registers of a SM are enough for, of which each takes multiples of 256.
  const uint32_t per_warp = (std::max(kernel.registers, 1u) * 32 + 255) / 256 * 256;
  return std::min(threads, model.registers_per_sm / per_warp * 32);
}

uint32_t MaxDynamicShared(const sim::Kernel& kernel, int setting) {
  if (setting >= 0) return static_cast<uint32_t>(setting);
  const uint32_t most = Model().shared_bytes_per_cta;
  return kernel.static_shared >= most ? 0 : most - kernel.static_shared;
}

CUresult ReadAttributes(const CUlaunchAttribute* attributes, unsigned count, LaunchShape* shape) {
  if (count > 0 && attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUlaunchAttributeValue& value = attributes[i].value;
    switch (attributes[i].id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape->cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
        if (IsEmpty(shape->cluster)) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        shape->cooperative = value.cooperative != 0;
        break;
      // Hints, and what a stream that runs one grid after another does anyway.
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      default:
        Say("a launch attribute (" + std::to_string(attributes[i].id) +
            ") that is not part of the software device");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult KernelOperation::Make(const Context& context, CUfunction handle, const LaunchShape& shape,
                               void** params, void** extra,
                               std::shared_ptr<const KernelOperation>* made) {
  std::shared_ptr<KernelOperation> operation(new KernelOperation);
  operation->handle_ = handle;
  operation->limits_ = context.limits;
  operation->shape_ = shape;
  CUresult result = FindFunction(context, handle, &operation->function_);
  if (result != CUDA_SUCCESS) return result;
  result = CheckShape(*operation->function_, operation->shape_);
  if (result != CUDA_SUCCESS) return result;
  const sim::Kernel& kernel = *operation->function_->kernel;
  result = CopyArguments(kernel, params, extra, &operation->params_);
  if (result != CUDA_SUCCESS) return result;
  for (const sim::KernelParameter& parameter : kernel.params) {
    operation->pointers_.push_back(operation->params_.data() + parameter.offset);
  }
  *made = std::move(operation);
  return CUDA_SUCCESS;
}

std::shared_ptr<KernelOperation> KernelOperation::Copy() const {
  std::shared_ptr<KernelOperation> operation(new KernelOperation);
  operation->handle_ = handle_;
  operation->limits_ = limits_;
  operation->function_ = function_;
  operation->shape_ = shape_;
  operation->params_ = params_;
  for (const sim::KernelParameter& parameter : function_->kernel->params) {
    operation->pointers_.push_back(operation->params_.data() + parameter.offset);
  }
  return operation;
}

CUresult KernelOperation::WithShape(const LaunchShape& shape,
                                    std::shared_ptr<const KernelOperation>* made) const {
  std::shared_ptr<KernelOperation> operation = Copy();
  operation->shape_ = shape;
  const CUresult result = CheckShape(*function_, operation->shape_);
  if (result != CUDA_SUCCESS) return result;
  *made = std::move(operation);
  return CUDA_SUCCESS;
}

std::shared_ptr<KernelOperation> KernelOperation::Numbered() const {
  std::shared_ptr<KernelOperation> operation = Copy();
  operation->grid_id_ = g_next_grid.fetch_add(1);
  return operation;
}

std::shared_ptr<const Operation> KernelOperation::Submitted() const {
  limits_->Use(*function_->kernel);
  return Numbered();
}

std::shared_ptr<const Operation> KernelOperation::Instantiated() const { return Numbered(); }

CUresult KernelOperation::Run() const {
  const RunningLaunch running;
  sim::LaunchConfig config{.kernel = function_->kernel,
                           .grid = shape_.grid,
                           .block = shape_.block,
                           .cluster = shape_.cluster,
                           .dynamic_shared = shape_.dynamic_shared,
                           .params = params_,
                           .grid_id = grid_id_,
                           .cooperative = shape_.cooperative};
  limits_->Use(*function_->kernel);
  limits_->Apply(config);
  sim::LaunchStatistics statistics;
  const auto fault = Processors().Run(config, running.token(), &statistics);
  if (statistics.printf_overwritten != 0) {
    Say(function_->kernel->name + ": the oldest " + std::to_string(statistics.printf_overwritten) +
        " of its printf calls are not shown, later ones overwrote them: set "
        "CU_LIMIT_PRINTF_FIFO_SIZE");
  }
  if (!fault) return CUDA_SUCCESS;
  if (running.timed_out()) {
    Say(function_->kernel->name + ": stopped after IKET_SIM_MAX_SECONDS");
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  }
  if (fault->kind != sim::Fault::Kind::kStopped) Say(fault->message);
  return ErrorOf(*fault);
}

}  // namespace iket::simdriver
