// kernel_names.h: short names of kernels, for labels and tables.
#pragma once

#include <string>
#include <string_view>

namespace iket::trace {

// The function's own name out of a demangled one: without return type, namespaces, template
// arguments and parameters. "void ns::gemm<float, 128>(float*)" gives "gemm". At most 48 bytes;
// what is longer is cut and ends in "...". Never empty unless `demangled` is.
std::string ShortKernelName(std::string_view demangled);

}  // namespace iket::trace
