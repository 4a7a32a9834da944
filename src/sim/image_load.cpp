// Loading a cubin: sections into memory, addresses into relocations, words into operations.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cubin/image.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "sim/bind.h"
#include "sim/image.h"
#include "sim/native.h"

namespace iket::sim {
namespace {

constexpr uint32_t kReservedShared = 0x400;
constexpr uint64_t kSectionAlign = 256;

// Relocation types of linked images (names as cuobjdump prints them).
constexpr uint32_t kReloc32 = 1;                // R_CUDA_32
constexpr uint32_t kReloc64 = 2;                // R_CUDA_64
constexpr uint32_t kRelocInstructionLow = 56;   // R_CUDA_ABS32_LO_32
constexpr uint32_t kRelocInstructionHigh = 57;  // R_CUDA_ABS32_HI_32
constexpr uint32_t kRelocCall = 75;             // R_CUDA_ABS55_16_34

bool IsUndefined(const cubin::Symbol& symbol) {
  return symbol.section == cubin::kSectionIndexUndefined;
}

std::optional<uint32_t> ConstantBank(uint32_t section_type) {
  if (section_type < cubin::kSectionCudaConstant0) return std::nullopt;
  const uint32_t bank = section_type - cubin::kSectionCudaConstant0;
  return bank < 18 ? std::optional(bank) : std::nullopt;
}

}  // namespace

class ImageLoader {
 public:
  ImageLoader(const cubin::Image& file, AddressSpace& space)
      : file_(file), space_(space), image_(new Image(space)) {}

  Result<std::unique_ptr<Image>> Load();

 private:
  Result<void> PlaceData();
  Result<void> PlaceCode();
  Result<void> Relocate();
  Result<void> RelocateSection(const cubin::Section& relocations, bool with_addend);
  Result<uint64_t> AddressOf(uint32_t symbol);
  void Bind();
  Result<void> AddKernels();
  void AddGlobals();
  Result<Image::Piece> Allocate(const cubin::Section& section);

  const cubin::Image& file_;
  AddressSpace& space_;
  std::unique_ptr<Image> image_;
  std::map<uint32_t, uint64_t> section_address_;
  std::map<uint32_t, std::byte*> section_bytes_;  // where the contents are, if they are loaded
  std::map<uint32_t, uint32_t> section_first_;    // code sections: first instruction
  std::map<uint32_t, std::vector<std::byte>> constants_;  // of kernels, by section
  std::vector<sass::Instruction> words_;
  std::map<uint32_t, uint64_t> call_targets_;  // instruction -> address
  std::vector<std::string> native_;            // names of functions of the driver
};

Result<std::unique_ptr<Image>> Image::Load(UntrustedBytes cubin, AddressSpace& space) {
  auto file = cubin::Image::Parse(cubin);
  if (!file) return tl::unexpected(file.error());
  if (file->sm() != 90) {
    return Fail(ErrorKind::kBadInput, "code for {}: the software device runs sm_90 alone",
                file->ArchName());
  }
  if (!file->linked()) {
    return Fail(ErrorKind::kBadInput, "a relocatable cubin (nvcc -rdc=true): link it first");
  }
  return ImageLoader(*file, space).Load();
}

Result<std::unique_ptr<Image>> ImageLoader::Load() {
  if (auto r = PlaceData(); !r) return tl::unexpected(r.error());
  if (auto r = PlaceCode(); !r) return tl::unexpected(r.error());
  if (auto r = Relocate(); !r) return tl::unexpected(r.error());
  Bind();
  if (auto r = AddKernels(); !r) return tl::unexpected(r.error());
  AddGlobals();
  return std::move(image_);
}

Result<Image::Piece> ImageLoader::Allocate(const cubin::Section& section) {
  constexpr uint64_t kMost = uint64_t{1} << 34;
  if (section.size > kMost) {
    return Fail(ErrorKind::kBadInput, "section {} of {} bytes", section.name, section.size);
  }
  const uint64_t bytes =
      (std::max<uint64_t>(section.size, 1) + kSectionAlign - 1) & ~(kSectionAlign - 1);
  auto memory = AllocateHostMemory(bytes);
  if (!memory) return tl::unexpected(memory.error());
  auto address = space_.Reserve(bytes, kSectionAlign);
  if (!address) return tl::unexpected(address.error());
  if (auto mapped = space_.Map(*address, bytes, *memory); !mapped) {
    return tl::unexpected(mapped.error());
  }
  std::copy(section.data.begin(), section.data.end(), memory->get());
  Image::Piece piece{*address, bytes, *memory};
  image_->pieces_.push_back(piece);
  return piece;
}

Result<void> ImageLoader::PlaceData() {
  for (uint32_t i = 0; i < file_.sections().size(); ++i) {
    const cubin::Section& section = file_.sections()[i];
    const auto bank = ConstantBank(section.type);
    const bool constant = section.name.starts_with(".nv.constant");
    if (section.name == ".nv.global" || section.name == ".nv.global.init" ||
        section.name.starts_with(".nv.global.")) {
      auto piece = Allocate(section);
      if (!piece) return tl::unexpected(piece.error());
      section_address_[i] = piece->address;
      section_bytes_[i] = piece->memory.get();
    } else if (constant) {
      // `.nv.constant<n>` of the module, `.nv.constant<n>.<kernel>` of a kernel.
      uint32_t number = bank.value_or(99);
      if (number == 99 && section.name.size() > 12) {
        number = static_cast<uint32_t>(section.name[12] - '0');
      }
      if (section.name.find('.', 12) == std::string_view::npos) {
        auto piece = Allocate(section);
        if (!piece) return tl::unexpected(piece.error());
        piece->size = section.size;
        section_address_[i] = piece->address;
        section_bytes_[i] = piece->memory.get();
        image_->constants_[number] = *piece;
      } else if (number != 0) {
        auto& bytes = constants_[i];
        bytes.assign(section.data.begin(), section.data.end());
        section_bytes_[i] = bytes.data();
      }
    }
  }
  return {};
}

Result<void> ImageLoader::PlaceCode() {
  auto functions = cubin::Functions(file_);
  if (!functions) return tl::unexpected(functions.error());
  for (uint32_t i = 0; i < file_.sections().size(); ++i) {
    const cubin::Section& section = file_.sections()[i];
    if ((section.flags & cubin::kFlagExecute) == 0 || section.data.empty()) continue;
    if (section.data.size() % sass::kInstructionBytes != 0) {
      return Fail(ErrorKind::kBadInput, "section {} of {} bytes is no whole number of instructions",
                  section.name, section.data.size());
    }
    section_first_[i] = static_cast<uint32_t>(words_.size());
    for (size_t at = 0; at < section.data.size(); at += sass::kInstructionBytes) {
      sass::Instruction word;
      std::memcpy(&word.low, section.data.data() + at, 8);
      std::memcpy(&word.high, section.data.data() + at + 8, 8);
      words_.push_back(word);
    }
  }
  // Functions that the driver provides stand behind the code, one instruction each.
  for (const cubin::Symbol& symbol : file_.symbols()) {
    if (IsUndefined(symbol) && symbol.type == cubin::kSymbolFunction && !symbol.name.empty()) {
      native_.emplace_back(symbol.name);
    }
  }
  std::sort(native_.begin(), native_.end());
  native_.erase(std::unique(native_.begin(), native_.end()), native_.end());

  const uint64_t bytes = (words_.size() + native_.size() + 1) * sass::kInstructionBytes;
  auto base = space_.Reserve(bytes, 4096);
  if (!base) return tl::unexpected(base.error());
  image_->code_base_ = *base;
  for (const auto& [section, first] : section_first_) {
    section_address_[section] = *base + uint64_t{first} * sass::kInstructionBytes;
  }
  for (const cubin::Function& function : *functions) {
    const auto first = section_first_.find(function.section);
    if (first == section_first_.end()) continue;
    const auto begin =
        first->second + static_cast<uint32_t>(function.offset / sass::kInstructionBytes);
    const auto length = static_cast<uint32_t>(function.size / sass::kInstructionBytes);
    image_->functions_.push_back(
        {begin, begin + length, std::string(function.name), first->second});
  }
  std::sort(image_->functions_.begin(), image_->functions_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.end > b.end;
  });
  return {};
}

Result<uint64_t> ImageLoader::AddressOf(uint32_t number) {
  if (number >= file_.symbols().size()) {
    return Fail(ErrorKind::kBadInput, "a relocation names symbol {}, there are {}", number,
                file_.symbols().size());
  }
  const cubin::Symbol& symbol = file_.symbols()[number];
  if (!IsUndefined(symbol) && symbol.has_section) {
    const auto found = section_address_.find(symbol.section);
    if (found != section_address_.end()) return found->second + symbol.value;
    return symbol.value;  // shared memory, and what is not loaded
  }
  const auto native = std::find(native_.begin(), native_.end(), symbol.name);
  if (native != native_.end()) {
    const auto place = words_.size() + static_cast<size_t>(native - native_.begin());
    return image_->code_base_ + place * sass::kInstructionBytes;
  }
  return symbol.value;
}

Result<void> ImageLoader::Relocate() {
  for (const cubin::Section& section : file_.sections()) {
    if (section.type != cubin::kSectionRela && section.type != cubin::kSectionRel) continue;
    if (auto r = RelocateSection(section, section.type == cubin::kSectionRela); !r) return r;
  }
  return {};
}

Result<void> ImageLoader::RelocateSection(const cubin::Section& relocations, bool with_addend) {
  const uint32_t target = relocations.info;
  const auto code = section_first_.find(target);
  const auto data = section_bytes_.find(target);
  if (code == section_first_.end() && data == section_bytes_.end()) return {};  // debug sections
  const uint64_t target_size = file_.sections()[target].size;
  const UntrustedBytes entries(relocations.data);
  const uint64_t entry = with_addend ? 24 : 16;
  for (uint64_t at = 0; at + entry <= entries.size(); at += entry) {
    const uint64_t offset = *entries.Read<uint64_t>(at);
    const uint64_t info = *entries.Read<uint64_t>(at + 8);
    const int64_t addend = with_addend ? *entries.Read<int64_t>(at + 16) : 0;
    const auto type = static_cast<uint32_t>(info);
    auto address = AddressOf(static_cast<uint32_t>(info >> 32));
    if (!address) return tl::unexpected(address.error());
    const uint64_t value = *address + static_cast<uint64_t>(addend);
    const uint64_t size = code != section_first_.end() ? 16 : type == kReloc32 ? 4 : 8;
    if (offset > target_size || size > target_size - offset) {
      return Fail(ErrorKind::kBadInput, "{}: a relocation at {:#x}, past the end of its section",
                  relocations.name, offset);
    }
    if (code != section_first_.end()) {
      const auto index = code->second + static_cast<uint32_t>(offset / sass::kInstructionBytes);
      sass::Instruction& word = words_[index];
      if (type == kRelocInstructionLow || type == kRelocInstructionHigh) {
        const uint64_t half = type == kRelocInstructionLow ? value & 0xffffffffu : value >> 32;
        word.low = (word.low & 0xffffffffu) | half << 32;
        continue;
      }
      if (type == kRelocCall) {
        call_targets_[index] = value;
        continue;
      }
    } else if (type == kReloc32 || type == kReloc64) {
      std::memcpy(data->second + offset, &value, size);
      continue;
    }
    return Fail(ErrorKind::kBadInput,
                "{}: a relocation of type {}, which the software device does not know",
                relocations.name, type);
  }
  return {};
}

void ImageLoader::Bind() {
  auto& code = image_->code_;
  code.reserve(words_.size() + native_.size() + 1);
  for (uint32_t i = 0; i < words_.size(); ++i) {
    code.push_back(BindInstruction(words_[i], i));
    const auto call = call_targets_.find(i);
    if (call != call_targets_.end()) {
      code.back().immediate = static_cast<int64_t>(call->second);
    }
  }
  for (const std::string& name : native_) code.push_back(BindNative(name));
  image_->native_names_ = native_;
  // Bytes are untrusted: what counts is which registers instructions name, not what REGCOUNT says.
  // The widest operand takes eight rows; native functions use up to R24.
  uint32_t last = kFirstRow + 24;
  for (const Op& op : code) {
    if (!op.guard_uniform) last = std::max<uint32_t>({last, op.d, op.a});
    if (op.b.kind == Operand::Kind::kRegister) last = std::max<uint32_t>(last, op.b.row);
    if (op.c.kind == Operand::Kind::kRegister) last = std::max<uint32_t>(last, op.c.row);
  }
  image_->register_rows_ = last + 8;
}

Result<void> ImageLoader::AddKernels() {
  const auto functions = cubin::Functions(file_);
  if (!functions) return tl::unexpected(functions.error());
  for (const cubin::Function& symbol_kernel : *functions) {
    if (!symbol_kernel.is_kernel) continue;
    const uint32_t section = symbol_kernel.section;
    if (!section_first_.contains(section)) continue;
    Kernel kernel;
    kernel.name = symbol_kernel.name;
    kernel.image = image_.get();
    kernel.entry = section_first_[section] +
                   static_cast<uint32_t>(symbol_kernel.offset / sass::kInstructionBytes);
    kernel.code_bytes = static_cast<uint32_t>(symbol_kernel.size);
    auto registers = cubin::GetRegisterCount(file_, symbol_kernel.symbol);
    if (!registers) return tl::unexpected(registers.error());
    kernel.registers = *registers;
    auto layout = cubin::Parameters(file_, section);
    if (!layout) return tl::unexpected(layout.error());
    kernel.param_base = layout->base;
    kernel.param_bytes = layout->size;
    if (kernel.param_base > 0x1000 || kernel.param_bytes > 0x10000) {
      return Fail(ErrorKind::kBadInput, "{}: {} bytes of parameters at {:#x} of c[0]", kernel.name,
                  kernel.param_bytes, kernel.param_base);
    }
    for (const auto& parameter : layout->parameters) {
      if (uint64_t{parameter.offset} + parameter.size > kernel.param_bytes) {
        return Fail(ErrorKind::kBadInput, "{}: a parameter of {} bytes at {} of {}", kernel.name,
                    parameter.size, parameter.offset, kernel.param_bytes);
      }
      kernel.params.push_back({parameter.offset, parameter.size});
    }
    if (kernel.param_base == 0) kernel.param_base = 0x210;
    if (const auto shared = file_.FindSection(".nv.shared." + kernel.name)) {
      const uint64_t bytes = file_.sections()[*shared].size;
      if (bytes > (1u << 20)) {
        return Fail(ErrorKind::kBadInput, "{}: {} bytes of shared memory", kernel.name, bytes);
      }
      kernel.static_shared =
          static_cast<uint32_t>(bytes > kReservedShared ? bytes - kReservedShared : 0);
    }
    if (const auto info = file_.FindSection(".nv.info")) {
      const auto& data = file_.sections()[*info].data;
      for (const auto code :
           {cubin::AttributeCode::kFrameSize, cubin::AttributeCode::kMinStackSize}) {
        const auto attribute = cubin::FindAttribute(data, code, symbol_kernel.symbol);
        const uint32_t bytes = attribute ? attribute->Word(1).value_or(0) : 0;
        if (bytes < (1u << 20)) kernel.local_bytes = std::max(kernel.local_bytes, bytes);
      }
    }
    if (const auto info = cubin::InfoSectionOf(file_, section)) {
      const auto& data = file_.sections()[*info].data;
      const auto words = [&](cubin::AttributeCode code) -> std::optional<Dim3> {
        const auto attribute = cubin::FindAttribute(data, code);
        if (!attribute || !attribute->Word(2)) return std::nullopt;
        return Dim3{*attribute->Word(0), *attribute->Word(1), *attribute->Word(2)};
      };
      if (const auto most = words(cubin::AttributeCode::kMaxThreads)) {
        kernel.max_threads = static_cast<uint32_t>(std::min<uint64_t>(most->count(), 1024));
      }
      if (const auto block = words(cubin::AttributeCode::kReqNTid)) kernel.required_block = *block;
      if (const auto cluster = words(cubin::AttributeCode::kCtaPerCluster)) {
        kernel.required_cluster = *cluster;
      }
      if (const auto barriers = cubin::FindAttribute(data, cubin::AttributeCode::kNumBarriers)) {
        kernel.barriers = barriers->value;
      }
      if (const auto externs = cubin::FindAttribute(data, cubin::AttributeCode::kExterns)) {
        for (uint32_t i = 0; const auto symbol = externs->Word(i); ++i) {
          if (*symbol >= file_.symbols().size()) continue;
          const std::string_view name = file_.symbols()[*symbol].name;
          kernel.uses_printf |= name == "vprintf";
          kernel.uses_heap |= name == "malloc" || name == "free";
        }
      }
    }
    if (const auto user = image_->constants_.find(3); user != image_->constants_.end()) {
      kernel.constant_bytes = static_cast<uint32_t>(user->second.size);
    }
    for (auto& [number, bytes] : constants_) {
      const std::string_view name = file_.sections()[number].name;
      if (name.substr(name.find('.', 12) + 1) == kernel.name) {
        const auto bank = static_cast<uint32_t>(name[12] - '0');
        image_->kernel_constants_[{bank, kernel.entry}] = bytes;
      }
    }
    image_->kernels_.push_back(std::move(kernel));
  }
  return {};
}

void ImageLoader::AddGlobals() {
  for (const cubin::Symbol& symbol : file_.symbols()) {
    if (!symbol.has_section || symbol.name.empty()) continue;
    if (symbol.type != cubin::kSymbolObject && symbol.type != cubin::kSymbolCudaObject) continue;
    const auto section = section_address_.find(symbol.section);
    if (section == section_address_.end() || section_first_.contains(symbol.section)) continue;
    image_->globals_.emplace(std::string(symbol.name),
                             Global{section->second + symbol.value, symbol.size});
  }
}

}  // namespace iket::sim
