// nvinfo.h: attributes of kernels, as ptxas writes them into `.nv.info` and `.nv.info.K`.
//
// Both sections are streams of records {u8 format, u8 code, u16 value or length, bytes}. The reader
// walks one record at a time without allocating; a record that would end past its section ends the
// walk and is an error. Edits produce new section contents and leave all other records untouched.
//
// `.nv.info` speaks of any function: its records begin with a symbol index. `.nv.info.K` belongs to
// the code section named in its sh_info.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "cubin/image.h"

namespace iket::cubin {

enum class AttributeFormat : uint8_t { kNone = 1, kByte = 2, kHalf = 3, kSized = 4 };

// Codes that something here or in `patch` reads. Others pass through.
enum class AttributeCode : uint8_t {
  kMaxThreads = 0x05,
  kParamCbank = 0x0a,  // {symbol, size << 16 | base in c[0]}
  kExterns = 0x0f,     // symbols of the driver's functions that the kernel may call
  kReqNTid = 0x10,
  kFrameSize = 0x11,     // .nv.info: {symbol, bytes}
  kMinStackSize = 0x12,  // .nv.info: {symbol, bytes}
  kKernelParam = 0x17,   // {index, ordinal | offset << 16, size << 18 | ...}
  kCbankParamSize = 0x19,
  kMaxRegCount = 0x1b,
  kExitOffsets = 0x1c,  // u32 each, from the start of the code section
  kS2rCtaidOffsets = 0x1d,
  kMaxStackSize = 0x23,
  kCoopGroupOffsets = 0x28,
  kRegCount = 0x2f,  // .nv.info: {symbol, registers a thread}
  kIndirectBranchTargets = 0x34,
  kCudaApiVersion = 0x37,
  kCtaPerCluster = 0x3d,
  kExplicitCluster = 0x3e,
  kMaxClusterRank = 0x3f,
  kReservedSmemUsed = 0x41,
  kKernelParamV2 = 0x45,  // where one is large: {index, ordinal | offset << 16, size | ... << 16}
  kSyscallOffsets = 0x46,
  kNumBarriers = 0x4c,
  kRegReconfig = 0x54,  // the kernel executes setmaxnreg
};

struct Attribute {
  AttributeFormat format = AttributeFormat::kNone;
  uint8_t code = 0;
  uint16_t value = 0;                  // kByte and kHalf; for kSized the length of the payload
  std::span<const std::byte> payload;  // kSized only
  uint64_t offset = 0;                 // of the record in its section
  uint64_t size = 0;                   // of the whole record

  bool Is(AttributeCode wanted) const { return code == static_cast<uint8_t>(wanted); }
  // The 32-bit word number `index` of the payload, if it is there.
  std::optional<uint32_t> Word(size_t index) const;
};

// Walks the records: `while (auto attribute = reader.Next())`; then ask failed().
class AttributeReader {
 public:
  explicit AttributeReader(std::span<const std::byte> untrusted) : bytes_(untrusted) {}
  std::optional<Attribute> Next();
  // True once a record ran past the end or had an unknown format; offset() is where it starts.
  bool failed() const { return failed_; }
  uint64_t offset() const { return offset_; }

 private:
  UntrustedBytes bytes_;
  uint64_t offset_ = 0;
  bool failed_ = false;
};

// The first record with that code, in a section's contents.
std::optional<Attribute> FindAttribute(std::span<const std::byte> untrusted, AttributeCode code);
// The first sized record with that code whose first word is `symbol` (`.nv.info`).
std::optional<Attribute> FindAttribute(std::span<const std::byte> untrusted, AttributeCode code,
                                       uint32_t symbol);

// The encoded record. EncodeWords: format kSized, at most 16,383 words.
std::vector<std::byte> EncodeValue(AttributeCode code, AttributeFormat format, uint16_t value);
std::vector<std::byte> EncodeWords(AttributeCode code, std::span<const uint32_t> words);
// `section` with the record `old` replaced by `record`.
std::vector<std::byte> ReplaceRecord(std::span<const std::byte> section, const Attribute& old,
                                     std::span<const std::byte> record);

// The `.nv.info.K` section of a code section, if there is one.
std::optional<uint32_t> InfoSectionOf(const Image& image, uint32_t code_section);

// Registers a thread of a function, by the index of its symbol. Cost: one pass over `.nv.info`.
Result<uint32_t> GetRegisterCount(const Image& image, uint32_t symbol);
// The same of all functions in one pass: by symbol.
std::map<uint32_t, uint32_t> RegisterCounts(const Image& image);
// Sets it wherever the image states it (up to sm_89 the code section's sh_info states it too).
Result<void> SetRegisterCount(Image& image, uint32_t symbol, uint32_t registers);

// Offsets of the EXIT instructions in a code section, as the compiler lists them; empty if it lists
// none.
Result<std::vector<uint32_t>> ExitOffsets(const Image& image, uint32_t code_section);

// True if the kernel changes its register count while it runs (setmaxnreg).
bool UsesSetMaxNReg(const Image& image, uint32_t code_section);

}  // namespace iket::cubin
