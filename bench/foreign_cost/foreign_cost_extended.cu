// SPDX-License-Identifier: Apache-2.0
//
// foreign_cost of ExtendedNativeDump.
#define FOREIGN_EXTENDED
#include "foreign_cost.cu"
