// perfetto_page.h: a page beside a trace that shows it in ui.perfetto.dev.
//
// It holds nothing of the trace: it fetches the file that lies beside it, which browsers allow over
// http only, or asks the person for it when the page was opened from a disk, and hands the bytes to
// Perfetto's page in a frame by the messages that that page documents. Nothing goes to any server;
// without a way to ui.perfetto.dev there is nothing to see, and the page says so.
#pragma once

#include <string>
#include <string_view>

namespace iket::cli::run_iket {

// HTML. `trace` is the name of a .pftrace or .pftrace.gz in the same folder, any text.
std::string PerfettoPage(std::string_view trace);

}  // namespace iket::cli::run_iket
