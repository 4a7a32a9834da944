// cuda_api.h: the toolkit's header with the names that the driver exports.
//
// cuda.h renames functions to their newest versions unless it is told to declare them all; a file
// that defines driver functions includes it through here, and nothing includes it before.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // NOLINT: cuda.h wants this very name
#include <cuda.h>
#include <cudaProfiler.h>
