// SPDX-License-Identifier: Apache-2.0
//
// attach.cu with the marks of NVIDIA's IKET, for run-iket to collect.
#define ATTACH_NVIDIA 1
#include "attach.cu"  // NOLINT: one program in two dialects
