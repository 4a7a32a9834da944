// recording.h: when launches are recorded: always, or in windows.
//
// A window is made of launches (`--launch A:B`), of what the program says (iket/session.h), of NVTX
// ranges, or of all of these: recording is on while each of them is open. Outside, patched code
// records into a sink: the constant that says where the rings are says so. It is changed by the
// first launch after a window has opened or closed, when all work that was launched before has
// ended: a launch is inside or outside as a whole, and the host waits at both ends of a window.
// Between them a launch costs a lock and a comparison, and nothing where there are no windows.
//
// To open and to close is a store: it waits for nothing, needs no context, and is harmless while a
// stream is captured, in a process without CUDA and in a callback of the driver.
//
// What was captured into a graph is inside when the graph is launched, not when it was captured.
#pragma once

#include <cstdint>
#include <mutex>

namespace iket::inject {

// The turn of one launch: while it lives, no window opens or closes.
struct Turn {
  std::unique_lock<std::mutex> held{};  // nothing where there are no windows
  bool recorded = true;
};
// Counts a launch of a traced kernel, or of a graph that has one, and opens or closes the window
// of launches. `captured`: it goes into a graph, and does not run.
Turn CountLaunch(bool captured) noexcept;

// What the program says. Before the first word of it recording is on, unless it was asked to wait.
void OpenByProgram() noexcept;
void CloseByProgram() noexcept;
// Opens or closes now what the next launch would; waits as that does.
void SettleWindows() noexcept;
// An NVTX range of the name that was asked for begins, or ends; they nest.
void OpenByRange() noexcept;
void CloseByRange() noexcept;

// True if images that are made ready now record.
bool IsRecording() noexcept;

}  // namespace iket::inject
