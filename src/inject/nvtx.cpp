// NVTX ranges as windows of the recording (recording.h): `iket profile --nvtx NAME`.
//
// NVTX is a header in the program. On its first call it loads the library that
// NVTX_INJECTION64_PATH names, which is this one again, and calls InitializeInjectionNvtx2; every
// shared object that has the header does so for itself. What we do not want stays a call of nothing
// there.
//
// A range costs the comparison of its name, and no lock. Nothing here needs memory but for domains.
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "inject/nvtx_interface.h"
#include "inject/recording.h"
#include "inject/say.h"
#include "inject/selection.h"

namespace iket::inject::nvtx {
namespace {

bool IsWanted(const char* name) { return name != nullptr && Wanted().nvtx == name; }

// `name` is UTF-32, what is wanted UTF-8.
bool IsWanted(const wchar_t* name) {
  if (name == nullptr) return false;
  std::string_view rest = Wanted().nvtx;
  for (; *name != 0; ++name) {
    const auto point = std::bit_cast<uint32_t>(*name);
    char bytes[4];
    size_t count = 0;
    const auto put = [&](uint32_t byte) { bytes[count++] = static_cast<char>(byte); };
    const auto put_six_bits = [&](int shift) { put(0x80 | ((point >> shift) & 0x3f)); };
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xc0 | point >> 6);
    } else if (point < 0x10000) {
      put(0xe0 | point >> 12);
      put_six_bits(6);
    } else {
      put(0xf0 | (point >> 18 & 7));
      put_six_bits(12);
      put_six_bits(6);
    }
    if (point >= 0x80) put_six_bits(0);
    if (!rest.starts_with(std::string_view(bytes, count))) return false;
    rest.remove_prefix(count);
  }
  return rest.empty();
}

// All that we need to know of a registered string is which of these two it is.
constexpr char kWantedString = 1, kOtherString = 0;

bool IsWanted(const Attributes* attributes) {
  if (attributes == nullptr || attributes->size < sizeof *attributes) return false;
  switch (attributes->message_type) {
    case MessageType::kAscii:
      return IsWanted(attributes->message.ascii);
    case MessageType::kUnicode:
      return IsWanted(attributes->message.unicode);
    case MessageType::kRegistered:
      return attributes->message.registered == &kWantedString;
    case MessageType::kUnknown:
      break;
  }
  return false;
}

// What a thread has pushed in one domain.
struct Stack {
  Domain domain = nullptr;
  uint32_t depth = 0;
  uint64_t wanted = 0;  // a bit for each of the outermost 64: it is a window
};
constexpr uint32_t kMostWindows = 64;  // nested in one another
constexpr size_t kMostDomains = 32;    // with ranges that are open at once in a thread
thread_local Stack t_stacks[kMostDomains];

// The stack of a domain, a free one if it has none; null if there is none.
Stack* StackOf(Domain domain) {
  Stack* free = nullptr;
  for (Stack& stack : t_stacks) {
    if (stack.depth != 0 && stack.domain == domain) return &stack;
    if (stack.depth == 0 && free == nullptr) free = &stack;
  }
  return free;
}

template <typename Name>
int Push(Domain domain, Name name) {
  const bool wanted = IsWanted(name);
  Stack* const stack = StackOf(domain);
  if (stack == nullptr || (wanted && stack->depth >= kMostWindows)) {
    Say("an NVTX range is nested too deep to be a window, or its thread uses too many domains");
    if (stack == nullptr) return -1;  // as NVTX says that something went wrong
  } else if (wanted) {
    stack->wanted |= uint64_t{1} << stack->depth;
    OpenByRange();
  }
  stack->domain = domain;
  return static_cast<int>(stack->depth++);
}

int Pop(Domain domain) {
  Stack* const stack = StackOf(domain);
  if (stack == nullptr || stack->depth == 0) return -1;
  --stack->depth;
  const uint64_t bit = stack->depth < kMostWindows ? uint64_t{1} << stack->depth : 0;
  if ((stack->wanted & bit) != 0) {
    stack->wanted &= ~bit;
    CloseByRange();
  }
  return static_cast<int>(stack->depth);
}

// The last bit of a range's id says that it is a window, so that its end needs no table.
template <typename Name>
RangeId Start(Name name) {
  static std::atomic<RangeId> last{0};
  const RangeId id = 2 * (last.fetch_add(1) + 1);
  if (!IsWanted(name)) return id;
  OpenByRange();
  return id | 1;
}

void End(RangeId id) {
  if ((id & 1) != 0) CloseByRange();
}

// The handle of the domain of this name: what is pushed in one is popped in the same.
template <typename Letter>
Domain Create(const Letter* name) noexcept {
  struct Domains {
    std::mutex mutex;
    std::map<std::basic_string<Letter>, char> names;  // elements stay where they are
  };
  try {
    static auto* const kDomains = new Domains;  // never destroyed: calls come until the very end
    if (name == nullptr) return nullptr;
    const std::lock_guard lock(kDomains->mutex);
    return &kDomains->names[name];
  } catch (...) {
    Say("out of memory; ranges of an NVTX domain are taken for those of no domain");
    return nullptr;
  }
}

// In the place of NVTX's functions.
RangeId StartEx(const Attributes* attributes) noexcept { return Start(attributes); }
RangeId StartA(const char* name) noexcept { return Start(name); }
RangeId StartW(const wchar_t* name) noexcept { return Start(name); }
void RangeEnd(RangeId id) noexcept { End(id); }
int PushEx(const Attributes* attributes) noexcept { return Push(nullptr, attributes); }
int PushA(const char* name) noexcept { return Push(nullptr, name); }
int PushW(const wchar_t* name) noexcept { return Push(nullptr, name); }
int PopRange() noexcept { return Pop(nullptr); }
RangeId DomainStartEx(Domain, const Attributes* attributes) noexcept { return Start(attributes); }
void DomainEnd(Domain, RangeId id) noexcept { End(id); }
int DomainPushEx(Domain domain, const Attributes* attributes) noexcept {
  return Push(domain, attributes);
}
int DomainPop(Domain domain) noexcept { return Pop(domain); }
String RegisterA(Domain, const char* name) noexcept {
  return IsWanted(name) ? &kWantedString : &kOtherString;
}
String RegisterW(Domain, const wchar_t* name) noexcept {
  return IsWanted(name) ? &kWantedString : &kOtherString;
}
Domain CreateA(const char* name) noexcept { return Create(name); }
Domain CreateW(const wchar_t* name) noexcept { return Create(name); }

struct Place {
  unsigned id;
  Function function;
};
template <typename F>
Function Untyped(F* function) {
  return reinterpret_cast<Function>(function);
}

// False if the program's NVTX has no such module.
template <size_t Count>
bool Fill(const Callbacks& callbacks, Module module, const Place (&places)[Count]) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) {
    return false;
  }
  for (const Place& place : places) {
    if (place.id < size && table[place.id] != nullptr) *table[place.id] = place.function;
  }
  return true;
}

bool Attach(GetExportTable get_export_table) {
  if (get_export_table == nullptr || Wanted().nvtx.empty()) return false;
  const auto* callbacks = static_cast<const Callbacks*>(get_export_table(kCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) {
    Say("the NVTX of this program is of a kind that is not known; its ranges are not seen");
    return false;
  }
  const Place core[] = {
      {kRangeStartEx, Untyped(StartEx)}, {kRangeStartA, Untyped(StartA)},
      {kRangeStartW, Untyped(StartW)},   {kRangeEnd, Untyped(RangeEnd)},
      {kRangePushEx, Untyped(PushEx)},   {kRangePushA, Untyped(PushA)},
      {kRangePushW, Untyped(PushW)},     {kRangePop, Untyped(PopRange)},
  };
  const Place core2[] = {
      {kDomainRangeStartEx, Untyped(DomainStartEx)},
      {kDomainRangeEnd, Untyped(DomainEnd)},
      {kDomainRangePushEx, Untyped(DomainPushEx)},
      {kDomainRangePop, Untyped(DomainPop)},
      {kDomainRegisterStringA, Untyped(RegisterA)},
      {kDomainRegisterStringW, Untyped(RegisterW)},
      {kDomainCreateA, Untyped(CreateA)},
      {kDomainCreateW, Untyped(CreateW)},
  };
  const bool has_core = Fill(*callbacks, Module::kCore, core);
  const bool has_domains = Fill(*callbacks, Module::kCore2, core2);
  return has_core || has_domains;
}

}  // namespace
}  // namespace iket::inject::nvtx

// Called by NVTX. 0 makes its calls do nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    iket::inject::nvtx::GetExportTable get_export_table) noexcept {
  return iket::inject::nvtx::Attach(get_export_table) ? 1 : 0;
}
