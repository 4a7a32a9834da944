// contexts.h: patched images in the contexts that they run in.
//
// A patched image stores to wherever its constant `__iket_window` says, so every context must get
// its window, and every image in it its constant, before the first launch there. Libraries have no
// context of their own (cuLibraryLoadData): so each launch asks whether its context is armed for
// all images that there are. The answer is two comparisons with thread-local values once it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "capture/content.h"
#include "inject/driver.h"
#include "inject/images.h"
#include "inject/ring_reading.h"

namespace iket::inject {

// The images that were loaded. A module belongs to the current context and is armed at once; so is
// a library where there is a context. False: the image could not be armed and must not run; the
// caller unloads it and loads the original.
bool AddLibrary(CUlibrary library, std::shared_ptr<PatchedImage> image) noexcept;
bool AddModule(CUmodule module, std::shared_ptr<PatchedImage> image) noexcept;
// It was unloaded: what was known of it and of its kernels is forgotten.
void RemoveLibrary(CUlibrary library) noexcept;
void RemoveModule(CUmodule module) noexcept;

// The number of a kernel by the name it has in a library or module; false if it is not traced.
bool FindKernel(CUlibrary library, const char* name, uint32_t* number) noexcept;
bool FindKernel(CUmodule module, const char* name, uint32_t* number) noexcept;
// The same of a handle that no hook has seen, by what the driver says of it; slow.
bool FindKernel(CUfunction function, uint32_t* number) noexcept;

// Makes sure that the current context can run every patched image. Cheap when there is nothing to
// do; call before each launch. What fails is tried twice: it may have been a moment's want.
struct Arming {
  // Not CUDA_SUCCESS: patched code would store to where there is no memory. What a launch shall
  // return then.
  CUresult result = CUDA_SUCCESS;
  uint32_t context = capture::kNoContext;  // its index in the capture
};
Arming ArmCurrentContext() noexcept;

// Tells all images again where to record, as recording.h says, when what was launched before has
// ended.
void PointImages() noexcept;

// Reads here what the rings of all contexts hold, whoever else has them, and hands it to `append`.
// What a reading that follows finds goes into the account, too: nobody will find it again.
// Error: kSystem, of the first context that could not be read.
struct ReadingWish {
  bool wait = false;    // until all kernels have ended; else those that run are read as they are
  bool quiet = false;   // none runs
  bool follow = false;  // from now on, ring_reading.h
};
Result<void> ReadAllRings(const ReadingWish& wish, const RingReading::Append& append) noexcept;

// The index in the capture of a context that has rings.
std::optional<uint32_t> IndexOf(CUcontext context) noexcept;

// The program is about to destroy a context: rings that only we can read are saved, and the modules
// that go with it forgotten.
void ContextEnds(CUcontext context) noexcept;
// The same for all contexts of a device (its primary context is reset), and for all there are.
void DeviceContextEnds(CUdevice device) noexcept;
void SaveAllRings() noexcept;

}  // namespace iket::inject
