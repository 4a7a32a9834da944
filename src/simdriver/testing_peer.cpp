// The other process of a test: maps memory by its descriptor, wants to see 1234, writes 4321.
// Usage: testing_peer LIBRARY DESCRIPTOR
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

namespace {

void* g_library = nullptr;

#define PEER_EXPANDED(name) reinterpret_cast<decltype(&::name)>(dlsym(g_library, #name))
#define PEER(name) PEER_EXPANDED(name)

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) Check(call, #call)

}  // namespace

int main(int, char** argv) {
  g_library = dlopen(argv[1], RTLD_NOW);
  if (g_library == nullptr) return 2;
  constexpr size_t kBytes = size_t{2} << 20;
  CUcontext context = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  CHECK(PEER(cuInit)(0));
  CHECK(PEER(cuDevicePrimaryCtxRetain)(&context, 0));
  CHECK(PEER(cuCtxSetCurrent)(context));
  CHECK(PEER(cuMemImportFromShareableHandle)(
      &handle, reinterpret_cast<void*>(static_cast<intptr_t>(std::atoi(argv[2]))),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CHECK(PEER(cuMemAddressReserve)(&address, kBytes, 0, 0, 0));
  CHECK(PEER(cuMemMap)(address, kBytes, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(PEER(cuMemSetAccess)(address, kBytes, &access, 1));
  int value = 0;
  CHECK(PEER(cuMemcpyDtoH)(&value, address, 4));
  if (value != 1234) return 3;
  value = 4321;
  CHECK(PEER(cuMemcpyHtoD)(address, &value, 4));
  return 0;
}
// NOLINTEND(performance-no-int-to-ptr)
