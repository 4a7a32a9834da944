// device.h: the one software device of the process: its memory, its machine, its numbers.
//
// Made at first use, never destroyed.
#pragma once

#include <cstddef>

#include "sim/address_space.h"
#include "sim/device_model.h"
#include "sim/machine.h"
#include "simdriver/cuda_api.h"

namespace iket::simdriver {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

const sim::DeviceModel& Model();
sim::AddressSpace& Addresses();
sim::Machine& Processors();

// There is one: 0.
inline bool IsDevice(CUdevice device) { return device == 0; }

// The value of an attribute; false for a number that is none.
bool DeviceAttribute(CUdevice_attribute attribute, int* value);

}  // namespace iket::simdriver
