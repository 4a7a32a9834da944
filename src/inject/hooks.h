// hooks.h: our answer to a look-up of a driver function.
#pragma once

#include <cstdint>

namespace iket::inject {

// What a program that asks the driver for `exported_name` (as dlsym does) gets instead of the
// driver's own function; null: the driver's own.
void* HookByExport(const char* exported_name) noexcept;

// The same for cuGetProcAddress: `name` is a base name without version, `flags` its 64-bit flags
// (bit 1 asks for the per-thread default stream).
void* HookByProcAddress(const char* name, int cuda_version, uint64_t flags) noexcept;

}  // namespace iket::inject
