// supervise.h: runs a program with the collector inside and keeps what it recorded.
//
// The supervisor stays the parent. Guests (the program and its children) write their own account
// and hand over handles of their ring memory; when a guest has ended, however it ended, its rings
// are read from here and joined with its account into one capture a process. While it runs, the
// rings can be read as well: for a snapshot, or again and again so that nothing is overwritten.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace iket::supervisor {

struct Options {
  std::vector<std::string> command;
  std::string output_folder;  // exists
  uint64_t ring_bytes = 32 << 10;
  bool flight = false;         // rings in the host's memory
  bool map_early = false;      // rings are mapped before there is code to record
  uint64_t memory_bytes = 0;   // that all rings on one GPU may take; 0: the collector's default
  std::string selection = {};  // what is to be recorded: session::Encode
  // The collector gets the program's NVTX ranges, too.
  bool nvtx = false;
  std::string library;  // libiket_inject.so; empty: beside this program (../lib)
  // A libcuda.so.1 for the program and for us; its folder goes in front of LD_LIBRARY_PATH. Empty:
  // the system's driver.
  std::string driver;
  // Variables that the program gets besides ours: name and value.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // What the program says on standard error goes where its standard output goes.
  bool error_to_output = false;
  // Empties the rings while kernels run (drain.h).
  bool stream = false;
  // Take a snapshot when warps are running and nothing was recorded for so long; 0: never.
  std::chrono::nanoseconds hang{0};
  // Says what happens meanwhile, a sentence each: snapshots. May be empty.
  std::function<void(const std::string&)> say = {};
};

struct Outcome {
  int exit_code = 0;                   // of the program
  int signal = 0;                      // that ended it, else 0
  std::vector<std::string> captures;   // one a process that ran marked code; all in output_folder
  std::vector<std::string> snapshots;  // files, in the order in which they were taken
  bool guests = false;                 // some process had code to trace
  std::vector<std::string> warnings;   // for a person, one sentence each
};

// Errors (kUsage): the command cannot be run, or cannot be traced (command.h). SIGINT and SIGTERM
// while it runs go to the program only; SIGUSR2 takes a snapshot of each process, and so does
// whoever asks on the control socket (session/control.h).
Result<Outcome> Supervise(const Options& options);

}  // namespace iket::supervisor
