// fault.h: why a launch ended early, and where.
#pragma once

#include <cstdint>
#include <string>

namespace iket::sim {

struct Fault {
  enum class Kind {
    kIllegalAddress,      // CUDA_ERROR_ILLEGAL_ADDRESS
    kMisaligned,          // CUDA_ERROR_MISALIGNED_ADDRESS
    kWrongSpace,          // CUDA_ERROR_INVALID_ADDRESS_SPACE
    kStackOverflow,       // CUDA_ERROR_HARDWARE_STACK_ERROR
    kIllegalInstruction,  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    kInvalidPc,           // CUDA_ERROR_INVALID_PC
    kUnsupported,         // CUDA_ERROR_NOT_SUPPORTED: an instruction that the machine does not know
    kTrap,                // CUDA_ERROR_LAUNCH_FAILED
    kAssert,              // CUDA_ERROR_ASSERT
    kDeadlock,            // CUDA_ERROR_LAUNCH_FAILED: every warp waits for another
    kTimeout,             // CUDA_ERROR_LAUNCH_TIMEOUT
    kStopped,             // the caller's stop_token; nobody's fault
    kBadLaunch,           // CUDA_ERROR_INVALID_VALUE or _LAUNCH_OUT_OF_RESOURCES: nothing ran
  };
  Kind kind = Kind::kUnsupported;
  // One line for a person: what, kernel+offset, CTA, warp, lane.
  std::string message;
  std::string kernel;   // mangled
  uint64_t offset = 0;  // of the instruction, from the start of the kernel's code section
  uint32_t cta[3] = {0, 0, 0};
  uint32_t warp = 0;
  uint32_t lane = 0;
  uint64_t address = 0;  // of memory faults

  // A launch for which the host has no memory. The text is short enough for a string to hold
  // without asking for memory.
  static Fault NoHostMemory() {
    Fault fault;
    fault.kind = Kind::kBadLaunch;
    fault.message = "no host memory";
    return fault;
  }
};

const char* FaultKindName(Fault::Kind kind);

}  // namespace iket::sim
