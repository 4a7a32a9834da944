// interception.h: how the driver's functions come to be ours when nobody preloaded this library.
//
// A program that is linked with it, or preloads it, finds our dlsym first: what takes the driver's
// functions by name (the CUDA runtime, static or shared) gets the hooks. A program that is linked
// with libcuda, too, has them where this library stands before it; where it stands behind, and
// where it was opened with dlopen(), the slots through which loaded objects call the driver, dlsym
// and nothing else are pointed at the hooks. Slots that another tool has taken are left alone.
//
// What cannot be had: code that was loaded, and pointers that were taken, before this library came.
#pragma once

namespace iket::profiling_session {

// Once, when the library is loaded; and again later for objects that have come meanwhile (it costs
// a walk over the names that they import). Nothing is done where the hooks are in front.
void Intercept() noexcept;

// Why nothing can be recorded in this process, as half a sentence; null if it can.
const char* WhyNotIntercepted() noexcept;

// True if a collector of `iket profile` or iket/embed.h is in this process.
bool HasOtherCollector() noexcept;

}  // namespace iket::profiling_session
