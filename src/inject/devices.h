// devices.h: what code the GPUs of this process run.
#pragma once

#include <cstdint>
#include <span>

#include "cubin/fatbin.h"
#include "cubin/image.h"

namespace iket::inject {

// Compute capabilities of the GPUs that the process sees, 90 for 9.0, each once, ascending; empty
// if the driver does not answer, as before cuInit. Asked once.
std::span<const uint32_t> Capabilities();
// That of the current context's GPU; 0 if there is no context.
uint32_t CurrentCapability();

// True if a GPU of this capability can run an entry's machine code, or what the driver makes of its
// PTX.
bool RunsOn(const cubin::FatbinEntry& entry, uint32_t capability);
// The same for any GPU of the process; true as well if they are unknown.
bool RunsHere(const cubin::FatbinEntry& entry);
bool RunsHere(const cubin::Image& code);

}  // namespace iket::inject
