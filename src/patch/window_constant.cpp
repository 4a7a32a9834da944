#include "patch/window_constant.h"

#include "cubin/kernels.h"

namespace iket::patch {
namespace {

constexpr uint32_t kConstantBytes = 8;
constexpr uint64_t kBankBytes = 65536;
constexpr char kSectionName[] = ".nv.constant3";

}  // namespace

Result<uint32_t> AddWindowConstant(cubin::Image& image) {
  if (image.FindSymbol(kWindowSymbol)) {
    return Fail(ErrorKind::kBadInput, "the image has a symbol {}: it is patched already",
                kWindowSymbol);
  }
  uint64_t offset = 0;
  auto section = cubin::UserConstantSection(image);
  if (section) {
    const cubin::Section& old = image.sections()[*section];
    std::vector<std::byte> data(old.data.begin(), old.data.end());
    offset = (data.size() + kConstantBytes - 1) / kConstantBytes * kConstantBytes;
    if (offset + kConstantBytes > kBankBytes) {
      return Fail(ErrorKind::kBadInput, "{} holds {} bytes: no room for 8 more within 64 KiB",
                  kSectionName, data.size());
    }
    data.resize(offset + kConstantBytes);
    const uint64_t align = old.align;
    if (auto done = image.SetSectionData(*section, std::move(data)); !done) {
      return tl::unexpected(done.error());
    }
    if (align < kConstantBytes) {
      if (auto done = image.SetSectionAlign(*section, kConstantBytes); !done) {
        return tl::unexpected(done.error());
      }
    }
  } else {
    auto added = image.AddSection({.name = kSectionName,
                                   .type = cubin::kSectionProgBits,
                                   .flags = cubin::kFlagAlloc,
                                   .align = kConstantBytes,
                                   .data = std::vector<std::byte>(kConstantBytes)});
    if (!added) return tl::unexpected(added.error());
    section = *added;
  }
  auto symbol = image.AddSymbol({.name = kWindowSymbol,
                                 .section = *section,
                                 .value = offset,
                                 .size = kConstantBytes,
                                 .type = cubin::kSymbolObject,
                                 .bind = cubin::kBindGlobal});
  if (!symbol) return tl::unexpected(symbol.error());
  return static_cast<uint32_t>(offset);
}

}  // namespace iket::patch
