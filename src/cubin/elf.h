// elf.h: the parts of ELF64 and of NVIDIA's additions to it that a cubin uses, as they lie in the
// file.
//
// Only what this room reads or writes by name is listed; everything else travels through an Image
// untouched. All structures are little-endian and are read with UntrustedBytes::Read, never by
// casting a pointer.
#pragma once

#include <cstdint>

namespace iket::cubin {

constexpr uint32_t kElfMagic = 0x464c457f;
constexpr int kIdentClass = 4;  // places in e_ident
constexpr int kIdentData = 5;
constexpr int kIdentAbiVersion = 8;
constexpr uint8_t kClass64 = 2;
constexpr uint8_t kDataLittleEndian = 1;
constexpr uint16_t kMachineCuda = 190;  // e_machine
constexpr uint16_t kTypeRelocatable = 1;
constexpr uint16_t kTypeExecutable = 2;

// sh_type
constexpr uint32_t kSectionNull = 0;
constexpr uint32_t kSectionProgBits = 1;
constexpr uint32_t kSectionSymbolTable = 2;
constexpr uint32_t kSectionStringTable = 3;
constexpr uint32_t kSectionRela = 4;
constexpr uint32_t kSectionNoBits = 8;
constexpr uint32_t kSectionRel = 9;
constexpr uint32_t kSectionSymbolIndices = 18;  // section numbers of symbols that need 32 bits
constexpr uint32_t kSectionCudaInfo = 0x70000000;
constexpr uint32_t kSectionCudaCallgraph = 0x70000001;
constexpr uint32_t kSectionCudaGlobal = 0x70000007;          // no bytes in the file (relocatable)
constexpr uint32_t kSectionCudaLocal = 0x70000009;           // no bytes in the file (relocatable)
constexpr uint32_t kSectionCudaShared = 0x7000000a;          // no bytes in the file (relocatable)
constexpr uint32_t kSectionCudaSharedReserved = 0x70000015;  // no bytes in the file
constexpr uint32_t kSectionCudaCapsuleText = 0x70000016;     // .nv.capmerc.text.K
constexpr uint32_t kSectionCudaConstant0 = 0x70000064;       // bank n: kSectionCudaConstant0 + n
constexpr uint32_t kSectionCudaCompat = 0x70000086;

// sh_flags
constexpr uint64_t kFlagWrite = 0x1;
constexpr uint64_t kFlagAlloc = 0x2;
constexpr uint64_t kFlagExecute = 0x4;
constexpr uint64_t kFlagInfoLink = 0x40;  // sh_info is a section number

// p_type, p_flags
constexpr uint32_t kSegmentLoad = 1;
constexpr uint32_t kSegmentHeaders = 6;
constexpr uint32_t kSegmentExecute = 1;
constexpr uint32_t kSegmentWrite = 2;
constexpr uint32_t kSegmentRead = 4;

// st_info, st_other, st_shndx
constexpr uint8_t kSymbolNoType = 0;
constexpr uint8_t kSymbolObject = 1;
constexpr uint8_t kSymbolFunction = 2;
constexpr uint8_t kSymbolSection = 3;
constexpr uint8_t kSymbolCudaObject = 13;  // __device__ and __constant__ data in relocatable cubins
constexpr uint8_t kBindLocal = 0;
constexpr uint8_t kBindGlobal = 1;
constexpr uint8_t kBindWeak = 2;
constexpr uint8_t kOtherCudaEntry = 0x10;  // a kernel, as against a device function
constexpr uint32_t kSectionIndexUndefined = 0;
constexpr uint32_t kSectionIndexReserved = 0xff00;  // from here up st_shndx is no section number
constexpr uint32_t kSectionIndexExtended = 0xffff;

constexpr uint32_t kMaxSegments = 0xfffe;  // e_phnum; 0xffff means something else
constexpr uint64_t kMaxAlign = 1 << 20;    // of what is added here; far above any in use

struct ElfHeader {
  uint8_t ident[16];
  uint16_t type;
  uint16_t machine;
  uint32_t version;
  uint64_t entry;
  uint64_t segments_offset;  // e_phoff
  uint64_t sections_offset;  // e_shoff
  uint32_t flags;
  uint16_t header_size;
  uint16_t segment_entry_size;
  uint16_t segment_count;
  uint16_t section_entry_size;
  uint16_t section_count;
  uint16_t names_section;  // e_shstrndx
};
static_assert(sizeof(ElfHeader) == 64);

struct ElfSection {
  uint32_t name;
  uint32_t type;
  uint64_t flags;
  uint64_t address;
  uint64_t offset;
  uint64_t size;
  uint32_t link;
  uint32_t info;
  uint64_t align;
  uint64_t entry_size;
};
static_assert(sizeof(ElfSection) == 64);

struct ElfSegment {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;
  uint64_t address;
  uint64_t physical_address;
  uint64_t file_size;
  uint64_t memory_size;
  uint64_t align;
};
static_assert(sizeof(ElfSegment) == 56);

struct ElfSymbol {
  uint32_t name;
  uint8_t info;  // bind << 4 | type
  uint8_t other;
  uint16_t section;
  uint64_t value;
  uint64_t size;
};
static_assert(sizeof(ElfSymbol) == 24);

// The compute capability as one number (90 for sm_90 and sm_90a), from e_flags and the byte
// e_ident[EI_ABIVERSION]: CUDA 13 writes ABI 8 with it in bits 8..15, older toolkits in bits 0..7.
constexpr int SmOf(uint32_t elf_flags, uint8_t abi_version) {
  return static_cast<int>(abi_version >= 8 ? (elf_flags >> 8) & 0xff : elf_flags & 0xff);
}

}  // namespace iket::cubin
