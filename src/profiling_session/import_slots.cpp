#include "profiling_session/import_slots.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace iket::profiling_session {
namespace {

// What the dynamic linker says of addresses it says in numbers.
template <typename T>
T* PointerTo(uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct Visit {
  const std::function<bool(const char* path)>& skip;
  const Choose& choose;
  size_t changed = 0;
};

// What of a loaded object is needed here.
struct Object {
  uintptr_t base = 0, begin = 0, end = 0;      // where it is
  uintptr_t sealed_begin = 0, sealed_end = 0;  // what was made read-only, whole pages
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * lazy = nullptr;  // slots of calls
  size_t lazy_bytes = 0;
  const ElfW(Rela) * data = nullptr;  // all else
  size_t data_bytes = 0;

  bool Holds(uintptr_t address) const { return begin <= address && address < end; }
  // The dynamic linker has relocated these in place, but not in every object (the vdso).
  template <typename T>
  const T* At(ElfW(Addr) address) const {
    return PointerTo<const T>(Holds(address) ? address : base + address);
  }
};

Object Describe(const dl_phdr_info& info) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  Object object{.base = info.dlpi_addr, .begin = UINTPTR_MAX};
  const ElfW(Dyn)* dynamic = nullptr;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t first = info.dlpi_addr + segment.p_vaddr, end = first + segment.p_memsz;
    if (segment.p_type == PT_LOAD) {
      object.begin = std::min(object.begin, first);
      object.end = std::max(object.end, end);
    } else if (segment.p_type == PT_DYNAMIC) {
      dynamic = PointerTo<const ElfW(Dyn)>(first);
    } else if (segment.p_type == PT_GNU_RELRO) {
      object.sealed_begin = first & ~(page - 1);
      object.sealed_end = end & ~(page - 1);
    }
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object.symbols = object.At<ElfW(Sym)>(value);
        break;
      case DT_STRTAB:
        object.names = object.At<char>(value);
        break;
      case DT_JMPREL:
        object.lazy = object.At<ElfW(Rela)>(value);
        break;
      case DT_PLTRELSZ:
        object.lazy_bytes = value;
        break;
      case DT_RELA:
        object.data = object.At<ElfW(Rela)>(value);
        break;
      case DT_RELASZ:
        object.data_bytes = value;
        break;
      default:
        break;
    }
  }
  return object;
}

bool Store(const Object& object, std::atomic<void*>* slot, void* value) {
  const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t address = reinterpret_cast<uintptr_t>(slot);
  const bool is_sealed = object.sealed_begin <= address && address < object.sealed_end;
  void* const page = PointerTo<void>(address & ~(size - 1));
  if (is_sealed && mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return false;
  slot->store(value, std::memory_order_release);
  if (is_sealed) mprotect(page, size, PROT_READ);
  return true;
}

void VisitTable(const Object& object, const ElfW(Rela) * table, size_t bytes, Visit& visit) {
  for (size_t i = 0; table != nullptr && i < bytes / sizeof *table; ++i) {
    const auto type = ELF64_R_TYPE(table[i].r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(table[i].r_info)];
    if (symbol.st_shndx != SHN_UNDEF) continue;
    auto* const slot = PointerTo<std::atomic<void*>>(object.base + table[i].r_offset);
    void* const now = slot->load(std::memory_order_acquire);
    const bool bound = !object.Holds(reinterpret_cast<uintptr_t>(now));
    void* const wanted =
        visit.choose({.name = object.names + symbol.st_name, .value = now, .bound = bound});
    if (wanted != nullptr && wanted != now && Store(object, slot, wanted)) ++visit.changed;
  }
}

int VisitObject(dl_phdr_info* info, size_t, void* data) {
  Visit& visit = *static_cast<Visit*>(data);
  if (visit.skip(info->dlpi_name)) return 0;
  const Object object = Describe(*info);
  if (object.symbols == nullptr || object.names == nullptr) return 0;
  VisitTable(object, object.lazy, object.lazy_bytes, visit);
  VisitTable(object, object.data, object.data_bytes, visit);
  return 0;
}

}  // namespace

size_t RebindImports(const std::function<bool(const char* path)>& skip, const Choose& choose) {
  Visit visit{.skip = skip, .choose = choose};
  dl_iterate_phdr(VisitObject, &visit);
  return visit.changed;
}

}  // namespace iket::profiling_session
