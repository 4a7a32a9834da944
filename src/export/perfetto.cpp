#include "export/perfetto.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "export/counter_tracks.h"
#include "export/edges.h"
#include "export/launches.h"
#include "export/proto.h"
#include "export/tracks.h"
#include "export/window_encoder.h"
#include "trace/edge_links.h"

namespace iket::exporter {
namespace {

constexpr uint32_t kHeadSequence = 1;  // descriptors, launches, health
constexpr uint32_t kFirstWindowSequence = 2;
constexpr size_t kFlushBytes = 1 << 20;

// Empties a ProtoWriter into a sink and remembers the first error.
class Output {
 public:
  explicit Output(const Sink& sink) : sink_(sink) {}

  ProtoWriter& writer() { return writer_; }
  const Result<void>& status() const { return status_; }

  bool Flush() {
    if (status_ && writer_.size() != 0) status_ = sink_(writer_.bytes());
    writer_.Clear();
    return status_.has_value();
  }
  bool FlushIfLarge() { return writer_.size() < kFlushBytes || Flush(); }

 private:
  const Sink& sink_;
  ProtoWriter writer_;
  Result<void> status_;
};

// Those with an end of a declared dependency.
std::vector<uint32_t> WarpsOf(const trace::EdgeLinks& links, const trace::Model& model) {
  std::vector<uint32_t> warps;
  for (const trace::EdgeLink& link : links.links) {
    warps.push_back(model.events.warp[link.from]);
    warps.push_back(model.events.warp[link.to]);
  }
  return warps;
}

// The curves of all GPUs, each with its track. That of events is counted while they are written.
class Curves {
 public:
  Curves(const trace::Model& model, TrackTree& tracks) : model_(model) {
    const auto devices = std::min<size_t>(model.devices.size(), TrackTree::kMostCurves / 3);
    for (uint32_t device = 0; device < devices; ++device) {
      for (const CounterCurve& curve : {ActiveWarps(model, device), SmFrequency(model, device)}) {
        if (curve.points.empty()) continue;
        known_.emplace_back(tracks.AddCurve(curve.name, curve.unit, curve.description),
                            curve.points);
      }
      EventRate rate(model, device);
      CounterCurve curve = rate.Curve();
      const bool ran = !rate.empty();
      rates_.emplace_back(ran ? tracks.AddCurve(curve.name, curve.unit, curve.description) : 0,
                          std::move(rate));
    }
  }

  void Count(std::span<const Edge> window) {
    for (const Edge& edge : window) {
      if (edge.event == trace::kNoRow) continue;
      const uint32_t device = model_.launches[model_.warps.launch[edge.warp]].device;
      if (device < rates_.size()) rates_[device].second.Add(edge.ns);
    }
  }

  // `flush` empties the writer now and then; false stops.
  template <typename Flush>
  bool Write(ProtoWriter& writer, Flush flush) const {
    for (const auto& [track, points] : known_) {
      if (!Write(points, track, writer, flush)) return false;
    }
    for (const auto& [track, rate] : rates_) {
      if (track != 0 && !Write(rate.Curve().points, track, writer, flush)) return false;
    }
    return true;
  }

 private:
  template <typename Flush>
  static bool Write(const Column<CounterPoint>& points, uint64_t track, ProtoWriter& writer,
                    Flush flush) {
    for (const CounterPoint& point : points) WriteCounter(point, kHeadSequence, track, writer);
    return flush();
  }

  const trace::Model& model_;
  std::vector<std::pair<uint64_t, Column<CounterPoint>>> known_;
  std::vector<std::pair<uint64_t, EventRate>> rates_;  // by device
};

// Windows are taken and written one after the other, and encoded side by side.
class WindowThreads {
 public:
  using Write = std::function<Result<void>(std::span<const Edge> window, std::string_view bytes)>;

  WindowThreads(EdgeStream& stream, Write write) : stream_(stream), write_(std::move(write)) {}

  // `make_encoder`: one for each thread.
  template <typename MakeEncoder>
  Result<void> Run(uint32_t count, const MakeEncoder& make_encoder) {
    const auto work = [&] {
      try {
        Encode(make_encoder());
      } catch (...) {  // no memory: it is for the caller
        const std::scoped_lock lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
        Stop();
      }
    };
    {
      std::vector<std::jthread> others;
      for (uint32_t i = 1; i < count; ++i) others.emplace_back(work);
      work();
    }
    if (thrown_) std::rethrow_exception(thrown_);
    return status_;
  }

 private:
  void Encode(WindowEncoder encoder) {
    std::vector<Edge> window;
    ProtoWriter writer;
    for (;;) {
      uint32_t number = 0;
      {
        const std::scoped_lock lock(stream_mutex_);
        if (stopped_ || !stream_.Next(window)) return;
        number = taken_++;
      }
      writer.Clear();
      encoder.Encode(window, kFirstWindowSequence + number, writer);
      std::unique_lock lock(mutex_);
      turn_.wait(lock, [&] { return stopped_ || written_ == number; });
      if (stopped_) return;
      status_ = write_(window, writer.bytes());
      if (!status_) return Stop();
      ++written_;
      turn_.notify_all();
    }
  }
  void Stop() {
    stopped_ = true;
    turn_.notify_all();
  }

  EdgeStream& stream_;
  const Write write_;
  std::mutex stream_mutex_, mutex_;  // of stream_ and taken_; of all below
  uint32_t taken_ = 0;
  std::condition_variable turn_;
  uint32_t written_ = 0;
  Result<void> status_;
  std::exception_ptr thrown_;
  std::atomic<bool> stopped_ = false;
};

uint32_t ThreadCount(const PerfettoOptions& options) {
  if (options.threads != 0) return options.threads;
  constexpr uint32_t kMost = 4;  // more only wait for the stream
  return std::clamp(std::thread::hardware_concurrency(), 1u, kMost);
}

}  // namespace

Result<void> WritePerfetto(const trace::Model& model, const Sink& sink,
                           const PerfettoOptions& options) {
  Output output(sink);
  const trace::EdgeLinks links = trace::LinkEdges(model);
  TrackTree tracks(model, WarpsOf(links, model));
  Curves curves(model, tracks);
  WriteAttributes(model, output.writer());
  WriteRenderStages(model, kHeadSequence, output.writer());
  if (!tracks.WriteDescriptors(output.writer(), kHeadSequence,
                               [&] { return output.FlushIfLarge(); })) {
    return output.status();
  }
  WriteLaunches(model, kHeadSequence, tracks, output.writer());
  if (tracks.host() != 0) {
    WriteHostMarks(model, kHeadSequence, tracks.host(), output.writer());
  }
  WriteHealth(model, links.counts, kHeadSequence, tracks.health(), output.writer());

  EdgeStream stream(model, options.edges_per_window, &tracks);
  if (!output.Flush()) return output.status();
  const auto encoder = [&] {
    return WindowEncoder(model, tracks, links.links, options.range_cycles);
  };
  uint64_t done = 0;
  const auto write = [&](std::span<const Edge> window, std::string_view bytes) {
    if (Result<void> written = sink(bytes); !written) return written;
    curves.Count(window);
    done += window.size();
    if (options.progress) options.progress(done, stream.total_edges());
    return Result<void>();
  };
  if (auto written = WindowThreads(stream, write).Run(ThreadCount(options), encoder); !written) {
    return written;
  }
  curves.Write(output.writer(), [&] { return output.FlushIfLarge(); });
  output.Flush();
  return output.status();
}

}  // namespace iket::exporter
