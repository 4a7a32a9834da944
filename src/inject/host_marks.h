// host_marks.h: what the program says with iket::session::mark, on its way into the capture.
//
// A mark that is set before there is a guest waits for it, for a while: a process that never loads
// an image with marks makes no file.
#pragma once

#include "inject/guest.h"

namespace iket::inject {

// At this moment. A null `text` says nothing; a long one is cut.
void AddHostMark(const char* text) noexcept;
// Called once, when the guest is there.
void KeepEarlyHostMarks(Guest& guest) noexcept;

}  // namespace iket::inject
