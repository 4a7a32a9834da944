// The part of NVTX 3 that windows.cpp calls, for toolkits that come without it: the same names, the
// same way to a library. Written from NVIDIA's description of the interface, independently of
// src/inject/nvtx_interface.h.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

// NOLINTBEGIN: NVTX's names
#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE 48
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_MESSAGE_TYPE_REGISTERED 3

struct nvtxDomainRegistration_st;
struct nvtxStringRegistration_st;
typedef nvtxDomainRegistration_st* nvtxDomainHandle_t;
typedef nvtxStringRegistration_st* nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
struct nvtxEventAttributes_t {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType;
  int32_t reserved0;
  uint64_t payload;
  int32_t messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
    nvtxStringHandle_t registered;
  } message;
};

namespace nvtx_stub {

typedef void (*Function)();
inline Function core[16], core2[16];  // what a library has put there
inline Function* core_table[17];
inline Function* core2_table[17];

inline int ModuleTable(int module, Function*** table, unsigned* size) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_table : core2_table;
  *size = 16;
  return 1;
}
struct Callbacks {
  size_t struct_size;
  int (*module_table)(int, Function***, unsigned*);
};
inline const void* ExportTable(uint32_t id) {
  static const Callbacks callbacks = {sizeof callbacks, ModuleTable};
  return id == 1 ? &callbacks : nullptr;
}

// As each copy of NVTX does on its first call.
inline void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (int i = 1; i < 16; ++i) core_table[i] = &core[i];
    for (int i = 1; i < 16; ++i) core2_table[i] = &core2[i];
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path != nullptr ? dlopen(path, RTLD_LAZY) : nullptr;
    if (library == nullptr) return;
    typedef int (*Entry)(const void* (*)(uint32_t));
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "InitializeInjectionNvtx2"));
    if (entry != nullptr && entry(ExportTable) != 0) return;
    for (int i = 0; i < 16; ++i) core[i] = core2[i] = nullptr;
    dlclose(library);
  });
}

template <typename Result, typename... Arguments>
Result Call(Function (&module)[16], int id, Result none, Arguments... arguments) {
  Initialize();
  if (module[id] == nullptr) return none;
  return reinterpret_cast<Result (*)(Arguments...)>(module[id])(arguments...);
}
template <typename... Arguments>
void CallNothing(Function (&module)[16], int id, Arguments... arguments) {
  Initialize();
  if (module[id] != nullptr) reinterpret_cast<void (*)(Arguments...)>(module[id])(arguments...);
}

}  // namespace nvtx_stub

typedef const nvtxEventAttributes_t* nvtx_stub_attributes;
inline nvtxRangeId_t nvtxRangeStartEx(nvtx_stub_attributes attributes) {
  return nvtx_stub::Call(nvtx_stub::core, 4, nvtxRangeId_t{0}, attributes);
}
inline nvtxRangeId_t nvtxRangeStartW(const wchar_t* name) {
  return nvtx_stub::Call(nvtx_stub::core, 6, nvtxRangeId_t{0}, name);
}
inline void nvtxRangeEnd(nvtxRangeId_t id) { nvtx_stub::CallNothing(nvtx_stub::core, 7, id); }
inline int nvtxRangePushEx(nvtx_stub_attributes attributes) {
  return nvtx_stub::Call(nvtx_stub::core, 8, -2, attributes);
}
inline int nvtxRangePushA(const char* name) {
  return nvtx_stub::Call(nvtx_stub::core, 9, -2, name);
}
inline int nvtxRangePushW(const wchar_t* name) {
  return nvtx_stub::Call(nvtx_stub::core, 10, -2, name);
}
inline int nvtxRangePop() { return nvtx_stub::Call(nvtx_stub::core, 11, -2); }
inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain,
                                            nvtx_stub_attributes attributes) {
  return nvtx_stub::Call(nvtx_stub::core2, 2, nvtxRangeId_t{0}, domain, attributes);
}
inline void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  nvtx_stub::CallNothing(nvtx_stub::core2, 3, domain, id);
}
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, nvtx_stub_attributes attributes) {
  return nvtx_stub::Call(nvtx_stub::core2, 4, -2, domain, attributes);
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  return nvtx_stub::Call(nvtx_stub::core2, 5, -2, domain);
}
inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char* name) {
  return nvtx_stub::Call(nvtx_stub::core2, 10, nvtxStringHandle_t{}, domain, name);
}
inline nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  return nvtx_stub::Call(nvtx_stub::core2, 12, nvtxDomainHandle_t{}, name);
}
// NOLINTEND
