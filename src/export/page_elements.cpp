#include "export/page_elements.h"

#include <libdeflate.h>

#include <algorithm>
#include <charconv>
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

// Of a tag, what stands between the id and its end.
std::optional<uint64_t> SizeOf(std::string_view text) {
  if (!text.starts_with(kElementSize) || !text.ends_with('"')) return std::nullopt;
  text.remove_prefix(kElementSize.size());
  uint64_t size = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || rest != &text.back()) return std::nullopt;
  return size;
}

bool IsName(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

const PageElement* PageElements::Find(std::string_view id) const {
  const auto at = std::ranges::find(all, id, &PageElement::id);
  return at == all.end() ? nullptr : &*at;
}

void AppendElement(std::string_view id, uint64_t size, std::string_view packed, std::string& page) {
  page.append(kElementBegin).append(id).append(kElementSize).append(std::to_string(size));
  page.append(kElementBytes);
  AppendBase64(packed, page);
  page.append(kElementEnd);
}

PageElements TakeApart(std::string_view untrusted) {
  PageElements parts;
  size_t at = std::min(untrusted.find(kElementBegin), untrusted.size());
  parts.before = untrusted.substr(0, at);
  while (untrusted.substr(at).starts_with(kElementBegin)) {
    const size_t id = at + kElementBegin.size();
    const size_t id_end = untrusted.find('"', id);
    const size_t tag_end = id_end == untrusted.npos ? id_end : untrusted.find('>', id_end);
    const size_t end = tag_end == untrusted.npos ? tag_end : untrusted.find(kElementEnd, tag_end);
    if (end == untrusted.npos) {
      parts.cut = at;
      break;
    }
    const size_t bytes = tag_end + 1;
    parts.all.push_back({.id = untrusted.substr(id, id_end - id),
                         .base64 = untrusted.substr(bytes, end - bytes),
                         .offset = at,
                         .bytes_offset = bytes,
                         .size = SizeOf(untrusted.substr(id_end, tag_end - id_end))});
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
  const auto damaged = [&element](uint64_t offset, std::string_view why) {
    return tl::unexpected(ElementDamage{offset, fmt::format("{}: {}", element.id, why)});
  };
  if (!element.size) return damaged(element.offset, "its data-size is missing, or no number");
  const uint64_t size = *element.size;
  const auto packed = DecodeBase64(element.base64);
  if (!packed) return damaged(element.bytes_offset + packed.error(), "not base64 from here");
  constexpr uint64_t kMostRatio = 1032;
  if (size / kMostRatio > packed->size()) {
    return damaged(element.offset, fmt::format("data-size is {}, more than {} bytes can unpack to",
                                               size, packed->size()));
  }
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) return damaged(element.offset, "no memory to unpack it");
  // Grows with what there is, not with what is claimed.
  std::string bytes(std::min<uint64_t>(size, packed->size() * 4), '\0');
  for (;;) {
    size_t used = 0, made = 0;
    const auto result =
        libdeflate_zlib_decompress_ex(decompressor.get(), packed->data(), packed->size(),
                                      bytes.data(), bytes.size(), &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (bytes.size() == size) {
        return damaged(element.offset, fmt::format("it unpacks to more than data-size, {}", size));
      }
      bytes.resize(std::min<uint64_t>(bytes.size() * 2, size));
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS || used != packed->size()) {
      return damaged(element.offset, "damaged: it does not unpack to what it was");
    }
    if (made == size) return bytes;
    return damaged(element.offset,
                   fmt::format("it unpacks to {} bytes; data-size is {}", made, size));
  }
}

uint32_t ShellChecksum(std::string_view before, std::string_view after) {
  return Crc32c(after.data(), after.size(), Crc32c(before.data(), before.size()));
}

}  // namespace iket::exporter
