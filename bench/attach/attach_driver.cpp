// SPDX-License-Identifier: Apache-2.0
//
// attach.cpp over the driver API, which the software device can run.
#include "attach.cpp"  // NOLINT: one program in two forms
