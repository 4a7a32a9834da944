// supervise.h: runs a program with the collector inside and keeps what it recorded.
//
// The supervisor stays the parent. Guests (the program and its children) write their own account
// and hand over handles of their ring memory; when the program has ended, however it ended, the
// rings are read from here and joined with the account into one capture a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::supervisor {

struct Options {
  std::vector<std::string> command;
  std::string output_folder;  // exists
  uint64_t ring_bytes = 32 << 10;
  std::string library;  // libiket_inject.so; empty: beside this program (../lib)
  // A libcuda.so.1 for the program and for us; its folder goes in front of LD_LIBRARY_PATH. Empty:
  // the system's driver.
  std::string driver;
};

struct Outcome {
  int exit_code = 0;                  // of the program
  int signal = 0;                     // that ended it, else 0
  std::vector<std::string> captures;  // one a process that ran marked code; all in output_folder
  std::vector<std::string> warnings;  // for a person, one sentence each
};

// Errors (kUsage): the command cannot be run, or cannot be traced since the loader takes no
// preloaded library into it (static, set-uid). SIGINT and SIGTERM while it runs go to the program
// only.
Result<Outcome> Supervise(const Options& options);

// What `execvp` would run, checked: found, executable, dynamically linked, not set-uid. A path.
Result<std::string> ResolveCommand(const std::string& command);

// Why no program can use a GPU with this driver (Options::driver): there is none, an old one, no
// GPU. Part of a sentence; empty if one can.
std::string WhyNoGpu(const std::string& driver);

// The GPUs that programs with this driver see, as it numbers them. Errors as WhyNoGpu says them.
struct Gpu {
  std::string name;
  bool simulated = false;  // of iket's own driver
  uint32_t sm = 0;         // 90 for compute capability 9.0
  uint32_t sm_count = 0;
};
struct GpuList {
  uint32_t driver_version = 0;  // of CUDA, as cuDriverGetVersion says it: 13000 for 13.0
  std::vector<Gpu> gpus;
};
Result<GpuList> ListGpus(const std::string& driver);

// The library that is preloaded into programs, beside this program (../lib). Error (kSystem): it is
// not there.
Result<std::string> FindCollector();

// The software device's libcuda.so.1, beside this program (../lib/iket-sim). Error (kSystem): it is
// not there.
Result<std::string> FindSoftwareDevice();

}  // namespace iket::supervisor
