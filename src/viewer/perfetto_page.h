// perfetto_page.h: the page that hands a trace to Perfetto's, whole; made at build time by
// embed.mjs.
//
// It fetches `trace` from where it comes from, and posts it to a window of https://ui.perfetto.dev.
// Its Content-Security-Policy, which it begins with, admits that, its script and its style.
#pragma once

#include <string_view>

namespace iket::viewer {

extern const std::string_view kPerfettoPage;

}  // namespace iket::viewer
