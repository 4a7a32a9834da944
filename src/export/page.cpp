#include "export/page.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>

#include "export/json_writer.h"
#include "export/page_block.h"
#include "export/page_columns.h"
#include "export/page_detail.h"
#include "export/page_elements.h"
#include "export/page_summary.h"
#include "export/tracks.h"
#include "trace/counters.h"
#include "trace/edge_links.h"
#include "viewer/page_parts.h"

namespace iket::exporter {
namespace {

constexpr uint64_t kSlicesInBlock = 1 << 20;
// How hard each is packed: what is taken for noise, as low bytes and payloads are, hardly gets
// smaller with more work (docs/benchmarks/viewer.md).
constexpr std::array<int, PageColumns::kParts> kLevels = {5, 2, 1};
constexpr int kLevelOfText = 9;

struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};
using Compressor = std::unique_ptr<libdeflate_compressor, FreeCompressor>;

class Writer {
 public:
  Writer(const trace::Model& model, const Sink& sink, const PageOptions& options)
      : model_(model),
        sink_(sink),
        options_(options),
        detail_(model, options.most_slices, options.detail),
        summary_(model, detail_),
        blocks_(model, detail_) {}

  Result<void> Write() {
    if (auto done = sink_(viewer::kPageBeforeData); !done) return done;
    for (uint32_t launch = 0; launch < model_.launches.size(); ++launch) {
      const uint32_t first = model_.launches[launch].first_warp;
      for (uint32_t i = 0; i < model_.launches[launch].warp_count; ++i) {
        if (!detail_.HasWarp(first + i)) continue;
        blocks_.Add(first + i);
        ++warps_;
        if (blocks_.slices() < kSlicesInBlock && warps_ < kWarpsInBlock) continue;
        if (auto done = EndBlock(launch); !done) return done;
      }
      if (warps_ == 0) continue;
      if (auto done = EndBlock(launch); !done) return done;
    }
    if (auto done = WriteSummary(); !done) return done;
    if (auto done = WriteData("links", Links(), kLevelOfText); !done) return done;
    // Last, since it says what is in the others.
    if (auto done = WriteData("head", Head(), kLevelOfText); !done) return done;
    return sink_(viewer::kPageAfterData);
  }

 private:
  static constexpr uint64_t kWarpsInBlock = 1 << 18;

  // Behind all blocks of warps, so that a page knows the cells by their numbers.
  Result<void> WriteSummary() {
    first_lane_block_ = block_rows_.size();
    if (detail_.all()) return {};
    for (uint32_t launch = 0; launch < model_.launches.size(); ++launch) {
      Result<void> done;
      summary_.EachLane(launch, [&](const SummaryLane& lane) {
        if (!done) return;
        blocks_.AddLane(lane);
        ++warps_;
        if (blocks_.slices() >= kSlicesInBlock || warps_ >= kWarpsInBlock) done = EndBlock(launch);
      });
      if (done && warps_ != 0) done = EndBlock(launch);
      if (!done) return done;
    }
    if (options_.note) {
      options_.note(fmt::format(
          "{} of {} warps are shown one by one, with {} of {} ranges and marks{}; the rest is a "
          "summary, whose counts are exact",
          detail_.warps(), model_.warps.size(), detail_.slices(),
          model_.ranges.size() + model_.marks.size(),
          detail_.cut() ? ", since more is not to be on a page (iket export --page-slices)" : ""));
    }
    return {};
  }

  Result<void> EndBlock(uint32_t launch) {
    block_rows_.push_back({launch, warps_, blocks_.slices(), blocks_.slice_rows()});
    warps_ = 0;
    const std::string number = std::to_string(block_rows_.size() - 1);
    Result<void> done;
    for (const auto part : {PageColumns::kShape, PageColumns::kLowBytes, PageColumns::kValues}) {
      if (!done) break;
      done = WriteData(std::string(PageColumns::kIds[part]) + number, blocks_.Columns(part),
                       kLevels[part]);
    }
    blocks_.End();
    if (options_.progress)
      options_.progress(blocks_.total_slices(), model_.ranges.size() + model_.marks.size());
    return done;
  }

  Result<void> WriteData(const std::string& id, std::string_view bytes, int level) {
    auto& compressor = compressors_[level];
    if (!compressor) compressor.reset(libdeflate_alloc_compressor(level));
    if (!compressor) return Fail(ErrorKind::kSystem, "export: no memory for compressing");
    packed_.resize(
        std::max(packed_.size(), libdeflate_zlib_compress_bound(compressor.get(), bytes.size())));
    const size_t size = libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(),
                                                 packed_.data(), packed_.size());
    element_.clear();  // keeps its memory, as an assignment would not
    AppendElement(id, bytes.size(), std::string_view(packed_).substr(0, size), element_);
    return sink_(element_);
  }

  // Dependencies as lines of four numbers: slice that they lead from, slice that they lead to,
  // whether to its end, and the declared edge (0: a flow of the code's own).
  std::string Links() {
    JsonWriter json;
    {
      auto all = json.Array();
      const auto put = [&](uint32_t from, uint32_t to, uint64_t edge) {
        const uint32_t a = blocks_.SliceOf(from), b = blocks_.SliceOf(to);
        if (a == trace::kNoRow || b == trace::kNoRow) {
          ++links_left_out_;
          return;
        }
        const trace::EventKind kind = model_.declarations[model_.events.declaration[to]].kind;
        json.Value(a);
        json.Value(b);
        json.Value(trace::Closes(kind) ? 1 : 0);
        json.Value(edge);
      };
      for (size_t i = 0; i < model_.flows.size(); ++i) {
        put(model_.flows.from[i], model_.flows.to[i], 0);
      }
      if (!model_.edges.empty()) {
        for (const trace::EdgeLink& link : trace::LinkEdges(model_).links) {
          put(link.from, link.to, uint64_t{link.edge} + 1);
        }
      }
    }
    return json.Take();
  }

  std::string Head() {
    JsonWriter json;
    {
      auto head = json.Object();
      json.Member("version", kPageVersion);
      json.Member("shell", ShellChecksum(viewer::kPageBeforeData, viewer::kPageAfterData));
      json.Member("command", model_.String(model_.command));
      json.Member("host", model_.String(model_.host));
      json.Member("pid", model_.process_id);
      json.Member("originNs", std::to_string(model_.origin_ns));
      json.Member("damage", model_.String(model_.damage));
      json.Member("filter", model_.String(model_.filter));
      json.Member("mended", blocks_.mended());
      WriteDevices(json);
      WriteNames(json);
      WriteLaunches(json);
      WriteTables(json);
      WriteHealth(json);
      if (!detail_.all()) WriteSummaryFacts(json);
    }
    return json.Take();
  }

  void WriteSummaryFacts(JsonWriter& json) {
    auto summary = json.Object("summary");
    json.Member("capture", options_.capture);
    json.Member("asked", options_.detail != nullptr);
    json.Member("cut", detail_.cut());
    json.Member("firstBlock", first_lane_block_);
    json.Member("parts", blocks_.parts());
    json.Member("detailWarps", detail_.warps());
    json.Member("warps", model_.warps.size());
    json.Member("detailSlices", detail_.slices());
    json.Member("slices", model_.ranges.size() + model_.marks.size());
    json.Member("doubtful", summary_.doubtful());
    json.Member("arrows", links_left_out_);
    if (options_.detail && options_.detail->window) {
      auto window = json.Array("window");
      json.Value(options_.detail->window->first);
      json.Value(options_.detail->window->second);
    }
  }

  void WriteDevices(JsonWriter& json) {
    auto devices = json.Array("devices");
    for (const trace::Device& device : model_.devices) {
      auto object = json.Object();
      json.Member("name", model_.String(device.name));
      json.Member("simulated", device.simulated);
      json.Member("sms", device.sm_count);
      auto clocks = json.Array("clocks");  // by SM: residual, then knots
      for (uint32_t sm = 0; sm < device.clock_count; ++sm) {
        const trace::SmClock& clock = model_.clocks[device.first_clock + sm];
        auto row = json.Array();
        json.Value(clock.residual_max_ns);
        for (const trace::SmClock::Knot& knot : clock.knots) {
          json.Value(knot.cycles);
          json.Value(knot.ns);
          json.Value(knot.slope);
        }
      }
    }
  }

  void WriteNames(JsonWriter& json) {
    auto declarations = json.Array("declarations");
    for (const trace::Declaration& row : model_.declarations) {
      auto object = json.Object();
      const bool unknown = row.kind == trace::EventKind::kUnknown;
      json.Member("name", unknown ? std::string("(unknown event)") : model_.NameOf(row));
      json.Member("kind", static_cast<int>(row.kind));
      json.Member("type", static_cast<int>(unknown ? trace::PayloadType::kU32 : row.payload));
      json.Member("payload", unknown ? std::string("id") : model_.String(row.payload_name));
      json.Member("category", model_.String(row.category));
      json.Member("file", model_.String(row.file));
      json.Member("line", row.line);
      json.Member("colour", row.colour == trace::kNoRow ? int64_t{-1} : int64_t{row.colour});
    }
  }

  void WriteLaunches(JsonWriter& json) {
    auto launches = json.Array("launches");
    for (const trace::Launch& launch : model_.launches) {
      auto object = json.Object();
      json.Member("label", LaunchLabel(model_, launch));
      json.Member("number",
                  launch.sequence == trace::kNoRow ? int64_t{-1} : int64_t{launch.sequence});
      json.Member("kernel", launch.kernel == trace::kNoRow
                                ? std::string()
                                : model_.String(model_.kernels[launch.kernel].demangled));
      json.Member("device", launch.device);
      json.Member("first", launch.first_ns);
      json.Member("last", launch.last_ns);
      json.Member("state", CompletenessWord(launch.completeness));
      json.Member("expected", launch.warps_expected);
      json.Member("lost", launch.lost_at_most);
    }
  }

  void WriteTables(JsonWriter& json) {
    {
      auto blocks = json.Array("blocks");
      for (const BlockRow& block : block_rows_) {
        auto row = json.Array();
        json.Value(block.launch);
        json.Value(block.warps);
        json.Value(block.slices);
        json.Value(block.rows);
      }
    }
    {
      auto rows = json.Array("rows");
      for (const PageRow& row : blocks_.rows()) {
        auto object = json.Object();
        json.Member("marks", row.marks);
        json.Member("group", model_.String(row.group));
        json.Member("lane", model_.String(row.lane));
        json.Member("token", model_.String(row.token));
        json.Member("depth", row.depth);
      }
    }
    {
      auto values = json.Array("values");
      for (const PageValue& value : blocks_.values()) {
        auto object = json.Object();
        json.Member("name", model_.String(value.name));
        json.Member("type", static_cast<int>(value.type));
        json.Member("end", value.at_end);
      }
    }
    auto edges = json.Array("edges");
    for (const trace::DeclaredEdge& edge : model_.edges) json.Value(model_.String(edge.label));
  }

  void WriteHealth(JsonWriter& json) {
    {
      auto counters = json.Array("counters");
      for (const trace::CounterInfo& info : trace::AllCounters()) {
        if (model_.counters.*info.member == 0) continue;
        auto object = json.Object();
        json.Member("value", model_.counters.*info.member);
        json.Member("meaning", info.meaning);
        json.Member("fault", info.fault);
      }
    }
    auto refused = json.Array("refused");
    for (const trace::Kernel& kernel : model_.kernels) {
      if (kernel.refusal == 0) continue;
      auto object = json.Object();
      json.Member("kernel", model_.String(kernel.short_name));
      json.Member("why", model_.String(kernel.refusal));
    }
  }

  struct BlockRow {
    uint32_t launch;
    uint64_t warps, slices, rows;
  };

  const trace::Model& model_;
  const Sink& sink_;
  const PageOptions& options_;
  PageDetail detail_;
  PageSummary summary_;
  std::map<int, Compressor> compressors_;  // by level
  PageBlocks blocks_;
  std::vector<BlockRow> block_rows_;
  size_t first_lane_block_ = 0;
  uint64_t links_left_out_ = 0;
  uint64_t warps_ = 0;            // in the block at hand
  std::string packed_, element_;  // kept from one block to the next: both are megabytes
};

}  // namespace

Result<void> WritePage(const trace::Model& model, const Sink& sink, const PageOptions& options) {
  return Writer(model, sink, options).Write();
}

}  // namespace iket::exporter
