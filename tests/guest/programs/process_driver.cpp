// SPDX-License-Identifier: Apache-2.0
//
// process.cpp over the driver API.
#include "process.cpp"  // NOLINT: one program in two forms
