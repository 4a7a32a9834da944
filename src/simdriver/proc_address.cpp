// cuGetProcAddress: a function by its base name, the CUDA version that the caller was written for,
// and which default stream it means.
#include <cstring>

#include "simdriver/call.h"
#include "simdriver/default_stream.h"

namespace iket::simdriver {
namespace {

struct Row {
  const char* base;
  void* function;
  int since;  // the least version for which this is the answer
  bool per_thread;
};

#define IKET_PROC_ADDRESS(base, exported, since, per_thread) \
  {base, reinterpret_cast<void*>(&::exported), since, per_thread},
const Row kRows[] = {
#include "simdriver_generated/proc_address.inc"
};
#undef IKET_PROC_ADDRESS

// Rows of one base name go from old to new.
CUdriverProcAddressQueryResult Find(const char* name, int version, bool per_thread,
                                    void** function) {
  bool known = false;
  void* plain = nullptr;
  void* twin = nullptr;
  for (const Row& row : kRows) {
    if (std::strcmp(row.base, name) != 0) continue;
    known = true;
    if (row.since > version) continue;
    (row.per_thread ? twin : plain) = row.function;
  }
  *function = per_thread && twin != nullptr ? twin : plain;
  if (*function != nullptr) return CU_GET_PROC_ADDRESS_SUCCESS;
  return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (name == nullptr || function == nullptr || (flags & ~kKnown) != 0 || flags == kKnown) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto found =
      Find(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, function);
  if (status != nullptr) *status = found;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
