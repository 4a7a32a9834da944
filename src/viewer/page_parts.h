// page_parts.h: the offline timeline page without its data; made at build time by embed.mjs.
//
// A page is kPageBeforeData, elements with data, kPageAfterData. Its Content-Security-Policy admits
// the one script and the one style that stand in it, by their hashes, and no network at all:
// nothing but data elements may be added.
#pragma once

#include <string_view>

namespace iket::viewer {

extern const std::string_view kPageBeforeData;
extern const std::string_view kPageAfterData;

}  // namespace iket::viewer
