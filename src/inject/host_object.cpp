#include "inject/host_object.h"

#include <link.h>

#include <cstddef>
#include <string_view>

namespace iket::inject {
namespace {

using std::literals::operator""sv;

constexpr auto kOwner = "iket\0"sv;
constexpr uint32_t kNoteOfMarks = 1;

// What is known of the loaded segment that was asked about last. Objects that are unloaded may make
// room for others at the same addresses, so it holds only until the next is.
struct Known {
  uintptr_t begin = 0, end = 0;
  unsigned long long unloaded = 0;
  HostObject answer = HostObject::kNone;
};
thread_local Known t_known;

struct Question {
  uintptr_t address;
  HostObject answer = HostObject::kNone;
};

// The loaded segment of an object that [address, address + size) lies in, readable; or null.
const ElfW(Phdr) * SegmentOf(const dl_phdr_info& object, uintptr_t address, uint64_t size) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const uint64_t offset = address - (object.dlpi_addr + segment.p_vaddr);
    if (offset < segment.p_memsz && size <= segment.p_memsz - offset) return &segment;
  }
  return nullptr;
}

bool SaysItHasMarks(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& notes = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + notes.p_vaddr;
    // Notes that are not loaded are not in memory.
    if (notes.p_type != PT_NOTE || SegmentOf(object, begin, notes.p_memsz) == nullptr) continue;
    const auto* bytes = reinterpret_cast<const void*>(begin);  // NOLINT: so the linker has it
    if (HasNote(UntrustedBytes(bytes, notes.p_memsz), notes.p_align)) return true;
  }
  return false;
}

uint64_t LoadedBytes(const dl_phdr_info& object) {
  uint64_t bytes = 0;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_LOAD) bytes += object.dlpi_phdr[i].p_memsz;
  }
  return bytes;
}

int Visit(dl_phdr_info* object, size_t size, void* data) {
  auto& question = *static_cast<Question*>(data);
  const bool counts = size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof object->dlpi_subs;
  const unsigned long long unloaded = counts ? object->dlpi_subs : 0;
  if (counts && unloaded == t_known.unloaded && question.address >= t_known.begin &&
      question.address < t_known.end) {
    question.answer = t_known.answer;
    return 1;
  }
  const ElfW(Phdr)* const segment = SegmentOf(*object, question.address, 1);
  if (segment == nullptr) return 0;
  question.answer = SaysItHasMarks(*object)                ? HostObject::kMarked
                    : LoadedBytes(*object) <= kSmallObject ? HostObject::kSmall
                                                           : HostObject::kUnmarked;
  const uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
  t_known = {.begin = begin,
             .end = begin + segment->p_memsz,
             .unloaded = unloaded,
             .answer = question.answer};
  return 1;
}

}  // namespace

bool HasNote(UntrustedBytes segment, uint64_t align) noexcept {
  struct Header {
    uint32_t name_size, contents_size, type;
  };
  const uint64_t step = align == 8 ? 8 : 4;
  const auto padded = [step](uint64_t size) { return (size + step - 1) / step * step; };
  uint64_t at = 0;
  while (const auto header = segment.Read<Header>(at)) {
    const auto name = segment.Slice(at + sizeof(Header), header->name_size);
    if (!name) return false;
    if (header->type == kNoteOfMarks &&
        std::string_view(reinterpret_cast<const char*>(name->data()), name->size()) == kOwner) {
      return true;
    }
    const uint64_t contents = padded(at + sizeof(Header) + header->name_size);
    at = padded(contents + header->contents_size);
  }
  return false;
}

HostObject HostObjectAt(const void* address) noexcept {
  Question question{.address = reinterpret_cast<uintptr_t>(address)};
  dl_iterate_phdr(Visit, &question);
  return question.answer;
}

}  // namespace iket::inject
