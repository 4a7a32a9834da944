// native.h: functions that a GPU's driver links into a program: printf, malloc, free, assert.
#pragma once

#include <string>

#include "sim/op.h"

namespace iket::sim {

// An operation that does what the driver's function of that name does and returns to R20:R21, or
// one that ends the launch with its name.
Op BindNative(const std::string& name);

}  // namespace iket::sim
