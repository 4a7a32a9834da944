#include "cubin/nvinfo.h"

#include <algorithm>
#include <cstring>

namespace iket::cubin {
namespace {

constexpr uint64_t kRecordHead = 4;  // u8 format, u8 code, u16 value or length

std::vector<std::byte> Record(AttributeFormat format, AttributeCode code, uint16_t value,
                              std::span<const std::byte> payload) {
  std::vector<std::byte> record(kRecordHead + payload.size());
  record[0] = static_cast<std::byte>(format);
  record[1] = static_cast<std::byte>(code);
  std::memcpy(record.data() + 2, &value, sizeof value);
  std::copy(payload.begin(), payload.end(), record.begin() + kRecordHead);
  return record;
}

// The record of `.nv.info` that gives the function `symbol` a value for `code`.
struct Found {
  uint32_t section;
  Attribute attribute;
};
std::optional<Found> FindInInfo(const Image& image, AttributeCode code, uint32_t symbol) {
  const auto section = image.FindSection(".nv.info");
  if (!section) return std::nullopt;
  const auto attribute = FindAttribute(image.sections()[*section].data, code, symbol);
  if (!attribute) return std::nullopt;
  return Found{*section, *attribute};
}

Result<void> CheckSymbol(const Image& image, uint32_t symbol) {
  if (symbol < image.symbols().size()) return {};
  return Fail(ErrorKind::kUsage, "cubin: there is no symbol {} (the image has {})", symbol,
              image.symbols().size());
}

}  // namespace

std::optional<uint32_t> Attribute::Word(size_t index) const {
  return UntrustedBytes(payload).Read<uint32_t>(index * sizeof(uint32_t));
}

std::optional<Attribute> AttributeReader::Next() {
  if (failed_ || offset_ == bytes_.size()) return std::nullopt;
  failed_ = true;  // until the record turns out to be whole
  const auto format = bytes_.Read<uint8_t>(offset_);
  const auto code = bytes_.Read<uint8_t>(offset_ + 1);
  const auto value = bytes_.Read<uint16_t>(offset_ + 2);
  if (!value || *format < static_cast<uint8_t>(AttributeFormat::kNone) ||
      *format > static_cast<uint8_t>(AttributeFormat::kSized)) {
    return std::nullopt;
  }
  Attribute attribute;
  attribute.format = static_cast<AttributeFormat>(*format);
  attribute.code = *code;
  attribute.value = *value;
  attribute.offset = offset_;
  attribute.size = kRecordHead;
  if (attribute.format == AttributeFormat::kSized) {
    const auto payload = bytes_.Slice(offset_ + kRecordHead, *value);
    if (!payload) return std::nullopt;
    attribute.payload = payload->span();
    attribute.size += *value;
  }
  offset_ += attribute.size;
  failed_ = false;
  return attribute;
}

std::optional<Attribute> FindAttribute(std::span<const std::byte> untrusted, AttributeCode code) {
  AttributeReader reader(untrusted);
  while (const auto attribute = reader.Next()) {
    if (attribute->Is(code)) return attribute;
  }
  return std::nullopt;
}

std::optional<Attribute> FindAttribute(std::span<const std::byte> untrusted, AttributeCode code,
                                       uint32_t symbol) {
  AttributeReader reader(untrusted);
  while (const auto attribute = reader.Next()) {
    if (attribute->Is(code) && attribute->Word(0) == symbol) return attribute;
  }
  return std::nullopt;
}

std::vector<std::byte> EncodeValue(AttributeCode code, AttributeFormat format, uint16_t value) {
  return Record(format, code, value, {});
}

std::vector<std::byte> EncodeWords(AttributeCode code, std::span<const uint32_t> words) {
  const auto bytes = std::as_bytes(words);
  return Record(AttributeFormat::kSized, code, static_cast<uint16_t>(bytes.size()), bytes);
}

std::vector<std::byte> ReplaceRecord(std::span<const std::byte> section, const Attribute& old,
                                     std::span<const std::byte> record) {
  const auto head = section.first(old.offset);
  const auto tail = section.subspan(old.offset + old.size);
  std::vector<std::byte> out;
  out.reserve(head.size() + record.size() + tail.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), record.begin(), record.end());
  out.insert(out.end(), tail.begin(), tail.end());
  return out;
}

std::optional<uint32_t> InfoSectionOf(const Image& image, uint32_t code_section) {
  const auto& sections = image.sections();
  const auto fits = [&](const Section& s) {
    return s.type == kSectionCudaInfo && s.info == code_section && (s.flags & kFlagInfoLink) != 0;
  };
  constexpr std::string_view kText = ".text";
  if (code_section < sections.size() && sections[code_section].name.starts_with(kText)) {
    std::string name = ".nv.info";
    name += sections[code_section].name.substr(kText.size());
    const auto found = image.FindSection(name);
    if (found && fits(sections[*found])) return found;
  }
  for (uint32_t i = 0; i < sections.size(); ++i) {
    if (fits(sections[i])) return i;
  }
  return std::nullopt;
}

Result<uint32_t> GetRegisterCount(const Image& image, uint32_t symbol) {
  if (auto ok = CheckSymbol(image, symbol); !ok) return tl::unexpected(ok.error());
  const auto found = FindInInfo(image, AttributeCode::kRegCount, symbol);
  const auto registers = found ? found->attribute.Word(1) : std::nullopt;
  if (!registers) {
    return Fail(ErrorKind::kBadInput, "cubin: .nv.info states no register count for {:.200}",
                image.symbols()[symbol].name);
  }
  return *registers;
}

std::map<uint32_t, uint32_t> RegisterCounts(const Image& image) {
  std::map<uint32_t, uint32_t> counts;
  const auto section = image.FindSection(".nv.info");
  if (!section) return counts;
  AttributeReader reader(image.sections()[*section].data);
  while (const auto attribute = reader.Next()) {
    if (!attribute->Is(AttributeCode::kRegCount)) continue;
    const auto symbol = attribute->Word(0);
    const auto registers = attribute->Word(1);
    if (symbol && registers) counts.emplace(*symbol, *registers);  // the first one holds
  }
  return counts;
}

Result<void> SetRegisterCount(Image& image, uint32_t symbol, uint32_t registers) {
  constexpr uint32_t kMostRegisters = 255;
  if (auto ok = CheckSymbol(image, symbol); !ok) return ok;
  if (registers > kMostRegisters) {
    return Fail(ErrorKind::kUsage, "cubin: a thread cannot have {} registers", registers);
  }
  if (auto old = GetRegisterCount(image, symbol); !old) return tl::unexpected(old.error());
  const auto found = FindInInfo(image, AttributeCode::kRegCount, symbol);
  const uint32_t words[] = {symbol, registers};
  if (auto ok = image.SetSectionData(
          found->section, ReplaceRecord(image.sections()[found->section].data, found->attribute,
                                        EncodeWords(AttributeCode::kRegCount, words)));
      !ok) {
    return ok;
  }
  // Up to sm_89: sh_info of the code section is registers << 24 | symbol of its kernel.
  constexpr uint32_t kSymbolMask = 0xffffff;
  const Symbol& function = image.symbols()[symbol];
  if (!function.has_section) return {};
  const uint32_t info = image.sections()[function.section].info;
  if (info >> 24 == 0 || (info & kSymbolMask) != symbol) return {};
  return image.SetSectionInfo(function.section, registers << 24 | (info & kSymbolMask));
}

Result<std::vector<uint32_t>> ExitOffsets(const Image& image, uint32_t code_section) {
  std::vector<uint32_t> offsets;
  const auto info = InfoSectionOf(image, code_section);
  if (!info) return offsets;
  const Section& section = image.sections()[*info];
  const uint64_t code_size = image.sections()[code_section].data.size();
  AttributeReader reader(section.data);
  while (const auto attribute = reader.Next()) {
    if (!attribute->Is(AttributeCode::kExitOffsets)) continue;
    for (size_t i = 0; const auto offset = attribute->Word(i); ++i) {
      if (*offset >= code_size) {
        return Fail(ErrorKind::kBadInput,
                    "cubin: {:.200} at {} lists an EXIT at {:#x}, past the {} bytes of code",
                    section.name, attribute->offset, *offset, code_size);
      }
      offsets.push_back(*offset);
    }
  }
  if (reader.failed()) {
    return Fail(ErrorKind::kBadInput, "cubin: {:.200} has no readable attribute at {}",
                section.name, reader.offset());
  }
  return offsets;
}

bool UsesSetMaxNReg(const Image& image, uint32_t code_section) {
  const auto info = InfoSectionOf(image, code_section);
  return info && FindAttribute(image.sections()[*info].data, AttributeCode::kRegReconfig);
}

}  // namespace iket::cubin
