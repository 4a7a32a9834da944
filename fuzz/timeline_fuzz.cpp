// From a capture of any bytes to the files for other tools: what can be decoded can be written in
// every format, and what was written passes our own strict check, whatever the capture says.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "capture/reader.h"
#include "export/check.h"
#include "export/formats.h"
#include "mutate_capture.h"
#include "trace/decode.h"
#include "trace/statistics.h"

namespace {

using iket::Result;
namespace capture = iket::capture;
namespace exporter = iket::exporter;
namespace trace = iket::trace;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Write(const char* format, const trace::Model& model,
           const exporter::WriteOptions& options = {}) {
  std::string file;
  const auto written = exporter::WriteAs(
      format, model,
      [&](std::string_view block) {
        file += block;
        return Result<void>();
      },
      options);
  Require(written.has_value());
  const auto checked = exporter::CheckExport(std::as_bytes(std::span(file)), format);
  Require(checked.has_value());
  if (checked->faults.count() == 0) return;
  std::fprintf(stderr, "%s: at byte %llu: %s\n", format,
               static_cast<unsigned long long>(checked->faults.first()[0].offset),
               checked->faults.first()[0].text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto reader = capture::Reader::FromBytes(std::as_bytes(std::span(data, size)), "fuzz");
  if (!reader) return 0;
  (void)reader->capture().damage.Summary();
  const auto model = trace::Decode(*reader);
  if (!model) return 0;
  trace::Summarize(*model, {.all_launches = true});
  if (model->warps.size() == 0) return 0;  // nobody writes nothing
  Write("pftrace", *model);
  Write("trace.json", *model);
  Write("html", *model);
  Write("html", *model, {.page = {.most_slices = 8}});  // most of it as a summary
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateCapture(data, size, max_size, seed);
}
