// window_constant.h: eight bytes of user constant memory that tell a patched image where its rings
// are.
#pragma once

#include <cstdint>

#include "cubin/image.h"

namespace iket::patch {

// The symbol that cuLibraryGetGlobal and cuModuleGetGlobal find it by. The host writes the base of
// the ring window (64 bits, low word 0) there, in each context, before the first launch.
inline constexpr char kWindowSymbol[] = "__iket_window";

// Adds the constant to an image: grows .nv.constant3, or adds that section. Returns its offset in
// c[3]. Fails when the user's constants leave no room (64 KiB) or the image has the symbol already.
Result<uint32_t> AddWindowConstant(cubin::Image& image);

}  // namespace iket::patch
