// facts.h: the part of a model that the capture states outright: process, devices, kernels,
// contexts. For this room and for those that make models of what other tools recorded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "capture/reader.h"
#include "trace/model.h"
#include "trace/strings.h"

namespace iket::trace {

// Fills process, devices (without clocks), kernels and damage.
void StateFacts(const capture::Capture& facts, StringInterner& strings, Model& model);

// Row of Model::kernels for the number in a record, kNoRow if there is no such kernel. Kernels keep
// the order of the capture.
uint32_t KernelRow(const capture::Capture& facts, uint32_t number);

// Row of Model::devices of a context; nothing if the capture does not know context or device.
std::optional<uint32_t> DeviceRow(const capture::Capture& facts, uint32_t context);

// Index of a warp within its CTA; kNoRow where its thread does not tell: no dimensions, dimensions
// that contradict it, or more than 32 layers of threads.
uint32_t WarpIndex(const ring::Identity& identity, const std::array<uint32_t, 3>& block);

inline std::array<uint32_t, 3> Sizes(const capture::Dim3& size) { return {size.x, size.y, size.z}; }

// Warps of a launch; 0 if it has no dimensions. Saturates.
uint64_t WarpsExpected(const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& block);
// The same of a kernel of which only some CTAs were recorded; 0 if nobody knows how many those
// were. `cluster` as the launch says it; `filter` may be null.
uint64_t WarpsExpected(const capture::KernelFilter* filter, const std::array<uint32_t, 3>& grid,
                       const std::array<uint32_t, 3>& block,
                       const std::array<uint32_t, 3>& cluster);
// How many CTAs with this blockIdx.x, and y and z where those are given, were recorded; 0 also if
// nobody knows.
uint64_t CtasExpected(const capture::KernelFilter* filter, uint32_t x, std::optional<uint32_t> y,
                      std::optional<uint32_t> z, const std::array<uint32_t, 3>& grid,
                      const std::array<uint32_t, 3>& cluster);

}  // namespace iket::trace
