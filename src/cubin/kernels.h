// kernels.h: which code an image holds: kernels, device functions, who calls whom, parameters.
//
// A kernel is a FUNC symbol with the bit kOtherCudaEntry and, in all images seen, fills its section
// `.text.K` from offset 0. Device functions that were not inlined lie inside the kernel's own range
// (whole-program compilation: `$K$f`) or in sections of their own (-rdc). So ranges may nest.
//
// Cost: one pass over the symbols. Names are views into the image (see image.h for how long).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cubin/image.h"

namespace iket::cubin {

struct Function {
  std::string_view name;  // mangled
  uint32_t symbol = 0;
  uint32_t section = 0;
  uint64_t offset = 0;  // in its section, bytes
  uint64_t size = 0;    // bytes; offset + size lies inside the section's contents
  bool is_kernel = false;
};

// All functions that have code here, in the order of the symbol table. A symbol that claims bytes
// outside its section is an error.
Result<std::vector<Function>> Functions(const Image& image);

// `.nv.constant3`: user __constant__ data. (`.nv.constant0.K` holds the parameters of kernel K.)
std::optional<uint32_t> UserConstantSection(const Image& image);

struct Parameter {
  uint32_t ordinal = 0;
  uint32_t offset = 0;  // from the first parameter
  uint32_t size = 0;    // bytes
};
struct ParameterLayout {
  uint32_t base = 0;  // of the parameters in c[0x0]: 0x160, 0x210 (sm_90), 0x380 (sm_100 and up)
  uint32_t size = 0;  // bytes
  std::vector<Parameter> parameters;  // by ordinal
};
Result<ParameterLayout> Parameters(const Image& image, uint32_t code_section);

// An edge of `.nv.callgraph`; both ends are symbol indices.
struct Call {
  uint32_t caller = 0;
  uint32_t callee = 0;
};
// What the compiler (or nvlink) knows of calls between functions with symbols of their own. Device
// functions inside a kernel's own range do not appear: nobody but that kernel can call them.
struct CallGraph {
  std::vector<Call> direct;
  std::vector<Call> indirect;            // caller may reach callee through a pointer
  std::vector<uint32_t> address_taken;   // functions that a pointer may point at
  std::vector<uint32_t> calls_pointers;  // functions that call through a pointer
};
// Empty where the image has no `.nv.callgraph`.
Result<CallGraph> ReadCallGraph(const Image& image);

}  // namespace iket::cubin
