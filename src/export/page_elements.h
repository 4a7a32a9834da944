// page_elements.h: the parts that the offline page is made of, for whoever writes it (page.h) and
// whoever looks into one (page_check.h).
//
// A page is a shell with elements in its middle, each with an id, a size, and so many bytes, which
// are deflated with a checksum (zlib) and in base64. Views into the page own nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace iket::exporter {

// Of what is in the elements. Version 1 did not say how long they are.
inline constexpr uint64_t kPageVersion = 2;

// What all pages begin with: the Content-Security-Policy comes first, so it holds for all of it.
inline constexpr std::string_view kPageBeginning =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"";
inline constexpr std::string_view kElementBegin =
    "<script type=\"application/octet-stream;base64\" id=\"";
inline constexpr std::string_view kElementSize = "\" data-size=\"";
inline constexpr std::string_view kElementBytes = "\">";
inline constexpr std::string_view kElementEnd = "</script>\n";

struct PageElement {
  std::string_view id, base64;
  uint64_t offset = 0;        // in the page
  uint64_t bytes_offset = 0;  // of `base64`
  // What `base64` unpacks to, as the page says; nothing if it says no number.
  std::optional<uint64_t> size;

  // In the page, what is behind it.
  uint64_t end() const { return bytes_offset + base64.size() + kElementEnd.size(); }
};

struct PageElements {
  std::string_view before, after;  // the shell
  std::vector<PageElement> all;
  std::optional<uint64_t> cut;  // where an element begins that does not end

  const PageElement* Find(std::string_view id) const;
};

// Appends an element with what was packed from `size` bytes.
void AppendElement(std::string_view id, uint64_t size, std::string_view packed, std::string& page);

// Any text has parts, if only a shell.
PageElements TakeApart(std::string_view untrusted);

// The policy that a page begins with; nothing if it is none of ours.
std::optional<std::string_view> PagePolicy(std::string_view untrusted);
// What a policy lets a page do that ours never may, in words; nothing if nothing: it is then of
// letters, quotes and base64 alone.
std::optional<std::string> WhatPolicyAdmits(std::string_view policy);

// The bytes of an element, as many as it says, or what is damaged and where in the page. Cost: the
// memory of what comes out, which deflate bounds by 1032 times what is there.
struct ElementDamage {
  uint64_t offset = 0;
  std::string text;
};
tl::expected<std::string, ElementDamage> Unpack(const PageElement& element);

// A number over all of a shell, by which one is known that was changed.
uint32_t ShellChecksum(std::string_view before, std::string_view after);

}  // namespace iket::exporter
