// selection.h: what of this process is wanted (session/selection.h), read once: from the
// environment, or what the program asked for before.
#pragma once

#include <string>

#include "patch/patch.h"
#include "session/selection.h"

namespace iket::inject {

// A selection that cannot be read is said in one line, and all is wanted.
const session::Selection& Wanted() noexcept;

// Asks for this selection in place of what the environment says. False: another has been read, with
// the first image or launch, and stays.
bool Select(const session::Selection& selection);

// Of a kernel, by its mangled name.
patch::Choice Choose(const std::string& mangled);

// Of an event, by its name; only where WantsAllEvents() is false.
bool WantsEvent(const std::string& name);
bool WantsAllEvents() noexcept;

// True if code without marks may be wanted too.
bool WantsUnmarked() noexcept;

// True if some warps may have to go elsewhere than to the rings.
bool NeedsSinks() noexcept;

}  // namespace iket::inject
