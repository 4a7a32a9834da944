// browser.h: the browser of the person at this machine, if there is one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::cli {

// The command that shows `address`: of BROWSER, or else xdg-open. Nothing where no window can open
// (no DISPLAY, no WAYLAND_DISPLAY), as in a remote shell, or neither program is there.
//
// BROWSER is a list, separated by colons, of commands, in which %s is the address; else it comes
// last. The first whose program is there is taken.
std::optional<std::vector<std::string>> BrowserCommand(const std::string& address);

// Starts it beside this process, which does not wait for it. What it prints is dropped. The command
// line of a process is public: no secret may stand in it.
Result<void> Start(const std::vector<std::string>& command);

}  // namespace iket::cli
