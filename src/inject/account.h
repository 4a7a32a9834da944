// account.h: what the capture says of a code image.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/bytes.h"
#include "cubin/image.h"
#include "inject/guest.h"
#include "patch/patch.h"

namespace iket::inject {

// The numbers of kernels by their mangled names. One that several cubins of a fatbin have, for
// several GPUs, has one number in all of them.
using KernelNumbers = std::map<std::string, uint32_t, std::less<>>;

// Writes what is known of a patched, or refused, cubin into the account, and the numbers of the
// kernels that were patched into `numbers`, if given. Kernels that have a number already are not
// written again. `source` says where the image comes from.
void Account(Guest& guest, const cubin::Image& image, const patch::ImageReport& report,
             UntrustedBytes bytes, const std::string& source, KernelNumbers* numbers);

}  // namespace iket::inject
