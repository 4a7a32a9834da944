#include "export/page_elements.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

#include "base/checksum.h"
#include "export/base64.h"

namespace iket::exporter {
namespace {

// Takes what stands up to `delimiter` off `text`; all of it where there is none.
std::string_view TakeUpTo(char delimiter, std::string_view& text) {
  const size_t end = std::min(text.find(delimiter), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

bool IsHash(std::string_view source) {
  constexpr std::string_view kBegin = "'sha256-";
  constexpr size_t kBytes = 32;
  if (!source.starts_with(kBegin) || !source.ends_with('\'')) return false;
  source.remove_prefix(kBegin.size());
  source.remove_suffix(1);
  const auto hash = DecodeBase64(source);
  return hash && hash->size() == kBytes;
}

bool IsName(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

const PageElement* PageElements::Find(std::string_view id) const {
  const auto at = std::ranges::find(all, id, &PageElement::id);
  return at == all.end() ? nullptr : &*at;
}

PageElements TakeApart(std::string_view untrusted) {
  PageElements parts;
  size_t at = std::min(untrusted.find(kElementBegin), untrusted.size());
  parts.before = untrusted.substr(0, at);
  while (untrusted.substr(at).starts_with(kElementBegin)) {
    const size_t id = at + kElementBegin.size();
    const size_t id_end = untrusted.find(kElementBytes, id);
    const size_t end = id_end == untrusted.npos ? id_end : untrusted.find(kElementEnd, id_end);
    if (end == untrusted.npos) {
      parts.cut = at;
      break;
    }
    const size_t bytes = id_end + kElementBytes.size();
    parts.all.push_back({.id = untrusted.substr(id, id_end - id),
                         .base64 = untrusted.substr(bytes, end - bytes),
                         .offset = at,
                         .bytes_offset = bytes});
    at = end + kElementEnd.size();
  }
  parts.after = untrusted.substr(at);
  return parts;
}

std::optional<std::string_view> PagePolicy(std::string_view untrusted) {
  if (!untrusted.starts_with(kPageBeginning)) return std::nullopt;
  untrusted.remove_prefix(kPageBeginning.size());
  return TakeUpTo('"', untrusted);
}

std::optional<std::string> WhatPolicyAdmits(std::string_view policy) {
  bool closed = false;  // what no directive names is forbidden
  while (!policy.empty()) {
    std::string_view directive = TakeUpTo(';', policy);
    while (directive.starts_with(' ')) directive.remove_prefix(1);
    const std::string_view name = TakeUpTo(' ', directive);
    if (!IsName(name)) return "it has a directive that is none";
    if (name == "default-src" && directive == "'none'") closed = true;
    while (!directive.empty()) {
      const std::string_view source = TakeUpTo(' ', directive);
      if (source == "'none'" || IsHash(source)) continue;
      if (source == "data:" && name == "img-src") continue;
      return fmt::format("{} admits {}", name.substr(0, 40), source.substr(0, 80));
    }
  }
  if (!closed) return "it does not begin by forbidding all, default-src 'none'";
  return std::nullopt;
}

tl::expected<std::string, ElementDamage> Unpack(const PageElement& element) {
  const auto packed = DecodeBase64(element.base64);
  if (!packed) {
    return tl::unexpected(ElementDamage{element.bytes_offset + packed.error(),
                                        fmt::format("{}: not base64 from here", element.id)});
  }
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) {
    return tl::unexpected(
        ElementDamage{element.offset, fmt::format("{}: no memory to unpack it", element.id)});
  }
  constexpr size_t kMostRatio = 1032;
  const size_t most = packed->size() * kMostRatio;
  std::string bytes(std::min<size_t>(most, packed->size() * 4), '\0');
  size_t used = 0, made = 0;
  for (;;) {
    const auto result =
        libdeflate_zlib_decompress_ex(decompressor.get(), packed->data(), packed->size(),
                                      bytes.data(), bytes.size(), &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE && bytes.size() < most) {
      bytes.resize(std::min(bytes.size() * 2, most));
      continue;
    }
    if (result == LIBDEFLATE_SUCCESS && used == packed->size()) break;
    return tl::unexpected(ElementDamage{
        element.offset, fmt::format("{}: damaged: it does not unpack to what it was", element.id)});
  }
  bytes.resize(made);
  return bytes;
}

uint32_t ShellChecksum(std::string_view before, std::string_view after) {
  return Crc32c(after.data(), after.size(), Crc32c(before.data(), before.size()));
}

}  // namespace iket::exporter
