// make_page: the timeline page of a random model, for the tests and the benchmark of the page.
//
//   make_page OUT SLICES LANES [MOST]    about so many slices in so many warps, nothing wrong with
//   them; MOST of them one by one, the rest as a summary
//   make_page OUT hostile         names that are markup, scripts, bidirectional text and 1 MB of
//   text
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "export/output_file.h"
#include "export/page.h"
#include "export/synthetic_model.h"

namespace {

iket::trace::Model Hostile() {
  iket::trace::Model model = iket::exporter::MakeSyntheticModel({});
  size_t i = 0;
  for (std::string& text : model.strings) {
    if (text.empty()) continue;
    switch (i++ % 4) {
      case 0:
        text.insert(0, "</script><script>window.hurt = 1</script>");
        break;
      case 1:
        text.insert(0, "<img src=x onerror=\"window.hurt = 2\">");
        break;
      case 2:
        text.insert(0, "\u202e\xff\xfe<b id=hurt>");
        break;
      default:
        text += std::string(1 << 20, 'A');
    }
  }
  return model;
}

iket::trace::Model Large(uint64_t slices, uint32_t lanes) {
  // Somewhat less than half of the events begin a slice, and marks are slices, too.
  return iket::exporter::MakeSyntheticModel(
      {.launches = 1,
       .ctas = lanes / 8,
       .warps_per_cta = 8,
       .events_per_warp = static_cast<uint32_t>(slices * 18 / 10 / lanes),
       .sms = 132,
       .faults = false});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string kind = argv[2];
  const iket::trace::Model model =
      kind == "hostile" ? Hostile()
                        : Large(std::strtoull(argv[2], nullptr, 10),
                                static_cast<uint32_t>(argc > 3 ? std::atoi(argv[3]) : 1056));
  auto file = iket::exporter::OutputFile::Create(argv[1]);
  if (!file) return 1;
  const std::clock_t start = std::clock();  // of the processor: the machine may be shared
  const auto written = iket::exporter::WritePage(
      model, [&](std::string_view bytes) { return file->Write(bytes); },
      {.most_slices = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : ~uint64_t{0}});
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!written || !file->Commit()) return 1;
  const auto slices = static_cast<double>(model.ranges.size() + model.marks.size());
  const auto events = static_cast<double>(model.events.size() + 2 * model.warps.size());
  fmt::print("{} slices, {:.2f} bytes a slice, {:.1f} M events a second\n", slices,
             static_cast<double>(file->bytes_written()) / slices, events / took / 1e6);
  return 0;
}
