// Launches.
#include "simdriver/call.h"
#include "simdriver/capture.h"
#include "simdriver/launch.h"

namespace iket::simdriver {
namespace {

CUresult Launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** params,
                void** extra) {
  return ContextCall([&](Context& context) {
    std::shared_ptr<const KernelOperation> launch;
    const CUresult bad = KernelOperation::Make(context, function, shape, params, extra, &launch);
    return bad == CUDA_SUCCESS ? Issue(context, stream, std::move(launch)) : bad;
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** params, void** extra) {
  return Launch(function,
                {.grid = {grid_x, grid_y, grid_z},
                 .block = {block_x, block_y, block_z},
                 .dynamic_shared = shared},
                stream, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                    .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                    .dynamic_shared = config->sharedMemBytes};
  return ContextCall([&](Context&) {
    const CUresult bad = ReadAttributes(config->attrs, config->numAttrs, &shape);
    return bad == CUDA_SUCCESS ? Launch(function, shape, config->hStream, params, extra) : bad;
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, CUstream stream,
                                   void** params) {
  return Launch(function,
                {.grid = {grid_x, grid_y, grid_z},
                 .block = {block_x, block_y, block_z},
                 .dynamic_shared = shared,
                 .cooperative = true},
                stream, params, nullptr);
}

}  // extern "C"
