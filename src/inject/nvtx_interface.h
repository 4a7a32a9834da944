// nvtx_interface.h: what NVTX 3 gives to a library that it loads (NVTX_INJECTION64_PATH), as
// NVIDIA's nvtx3/nvtxDetail/nvtxTypes.h has it. Written down here because not every toolkit comes
// with those headers; the layout is NVTX's promise to tools that are older than a program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iket::inject::nvtx {

inline constexpr uint32_t kCallbacks = 1;  // the export table that has them

enum class Module : int { kCore = 1, kCore2 = 5 };

// Places in a module's table.
enum Core : unsigned {
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
};
enum Core2 : unsigned {
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

using Function = void (*)();
// An element points to where the program keeps the function that it calls; null: it has none.
using FunctionTable = Function**;

struct Callbacks {
  size_t struct_size;
  int (*get_module_function_table)(Module module, FunctionTable* table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

using Domain = const void*;  // our handles; null: the program's own, without a name
using String = const void*;  // our handles
using RangeId = uint64_t;

enum class MessageType : int32_t { kUnknown = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

// What a call with "Ex" is given.
struct Attributes {
  uint16_t version;
  uint16_t size;  // bytes of this that there are
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  MessageType message_type;
  union {
    const char* ascii;
    const wchar_t* unicode;
    String registered;
  } message;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40);

}  // namespace iket::inject::nvtx
