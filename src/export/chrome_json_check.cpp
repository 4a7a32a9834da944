#include "export/chrome_json_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "export/json_source.h"

namespace iket::exporter {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostDepth = 64;
constexpr std::string_view kPhases = "BEXiIMsftCbneNODPRcVv(){}";
constexpr double kMostMicros = 9e15;  // a double tells whole ones apart up to here

class Walk : public nlohmann::json_sax<Json> {
 public:
  Walk(const JsonSource& source, Faults& faults) : source_(source), faults_(faults) {}

  bool null() override { return Scalar(); }
  bool boolean(bool value) override {
    if (InFacts() && key_ == "simulated") simulated_ = value;
    return Scalar();
  }
  bool number_float(double value, const std::string&) override { return Number(value); }
  bool number_integer(int64_t value) override { return Number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return Number(static_cast<double>(value)); }
  bool binary(Json::binary_t&) override { return Scalar(); }
  bool string(std::string& text) override {
    if (InFacts() && key_ == "tool") ours_ = text == "iket";
    if (InFacts() && key_ == "origin_ns") has_origin_ = true;
    if (InEvent()) {
      if (key_ == "ph") event_.phase = text.size() == 1 ? text[0] : '?';
      if (key_ == "name") event_.has_name = true, event_.names_thread = text == "thread_name";
      if (key_ == "cat") event_.has_category = true;
      if (key_ == "id") event_.id = text;
    }
    return Scalar();
  }
  bool key(std::string& name) override {
    key_ = name;
    if (depth_ == 1) top_ = name;
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 2 && top_ == "traceEvents") event_ = {};
    return Deeper(false);
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 2 && top_ == "traceEvents" && in_events_) EndEvent();
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 1 && top_ == "traceEvents") {
      in_events_ = true;
      any_events_ = true;
    }
    return Deeper(true);
  }
  bool end_array() override {
    if (--depth_ == 1) in_events_ = false;
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    constexpr size_t kMostWords = 200;
    std::string_view said = error.what();
    for (const std::string_view head : {"] ", "syntax error "}) {
      const size_t at = said.find(head);
      if (at != said.npos) said.remove_prefix(at + head.size());
    }
    Add("json", fmt::format("not JSON: {}", said.substr(0, kMostWords)));
    return false;
  }

  void Finish() {
    if (!any_events_) Add("key", "traceEvents is missing");
    if (ours_ && !has_origin_) Add("key", "otherData lacks origin_ns");
    CheckNesting();
    for (const auto& [id, ends] : arrows_) {
      if (ends != std::pair(1u, 1u)) {
        Add("flow", fmt::format("arrow {} has {} beginnings and {} ends", id.substr(0, 40),
                                ends.first, ends.second));
      }
    }
    for (const auto& thread : threads_) {
      if (ours_ && !named_.contains(thread)) {
        Add("track", fmt::format("events on thread {} of process {}, which has no name",
                                 thread.second, thread.first));
      }
    }
  }
  ChromeJsonContents contents() const {
    return {.counts = {{"slice", slices_.size()}, {"marker", marks_}, {"arrow", arrows_.size()}},
            .simulated = simulated_};
  }

 private:
  using Thread = std::pair<int64_t, int64_t>;  // process and thread
  struct Event {
    char phase = 0;
    bool has_name = false, names_thread = false, has_category = false;
    std::optional<double> pid, tid, ts, dur;
    std::string id;
  };
  struct Slice {
    Thread thread;
    int64_t begin, end;  // ns
  };

  bool InEvent() const { return depth_ == 3 && in_events_; }
  bool InFacts() const { return depth_ == 2 && top_ == "otherData"; }
  void Add(std::string_view kind, std::string text) {
    faults_.Add(source_.offset(), kind, std::move(text));
  }
  bool Deeper(bool array) {
    if (depth_ == 0 && array) Add("json", "not an object");
    if (depth_ == 2 && in_events_ && array) Add("type", "an array among the events");
    if (++depth_ <= kMostDepth) return true;
    Add("json", "nested too deep; what follows was not read");
    return false;
  }
  bool Scalar() {
    if (depth_ == 2 && in_events_) Add("type", "something among the events that is none");
    return true;
  }
  bool Number(double value) {
    if (!InEvent()) return Scalar();
    if (key_ == "pid") event_.pid = value;
    if (key_ == "tid") event_.tid = value;
    if (key_ == "ts") event_.ts = value;
    if (key_ == "dur") event_.dur = value;
    if (key_ == "id") event_.id = fmt::format("{}", value);
    return true;
  }

  void EndEvent() {
    if (event_.phase == 0 || kPhases.find(event_.phase) == kPhases.npos) {
      return Add("phase", "an event whose ph is none of the format's");
    }
    if (event_.phase == 'c' || event_.phase == 'R') return;  // of other tools, without a thread
    const auto usable = [](const std::optional<double>& number) {
      return number && std::abs(*number) < kMostMicros;
    };
    if (!usable(event_.pid) || !usable(event_.tid)) {
      if (ours_) Add("key", "an event without pid or tid");
      return;
    }
    const Thread thread(std::llround(*event_.pid), std::llround(*event_.tid));
    if (event_.phase == 'M') {
      if (event_.names_thread) named_.insert(thread);
      return;
    }
    if (!usable(event_.ts)) return Add("time", "an event without a time");
    if (!event_.has_name && event_.phase != 'E') Add("key", "an event without a name");
    threads_.insert(thread);
    const int64_t ns = std::llround(*event_.ts * 1000);
    switch (event_.phase) {
      case 'X': {
        if (!usable(event_.dur)) return Add("time", "a complete event without dur");
        if (*event_.dur < 0) return Add("time", "it ends before it begins");
        slices_.push_back({thread, ns, ns + std::llround(*event_.dur * 1000)});
        return;
      }
      case 'i':
      case 'I':
        ++marks_;
        return;
      case 's':
        ++arrows_[event_.id].first;
        return;
      case 'f':
        ++arrows_[event_.id].second;
        return;
      default:
        return;
    }
  }

  // On one thread what begins inside of something ends there.
  void CheckNesting() {
    std::ranges::stable_sort(slices_, [](const Slice& a, const Slice& b) {
      return std::tuple(a.thread, a.begin, b.end) < std::tuple(b.thread, b.begin, a.end);
    });
    std::vector<Slice> open;
    for (const Slice& slice : slices_) {
      if (!open.empty() && open.back().thread != slice.thread) open.clear();
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back().end) {
        Add("nesting", fmt::format("slices of thread {} of process {} cross at {} ns",
                                   slice.thread.second, slice.thread.first, slice.begin));
      }
      open.push_back(slice);
    }
  }

  const JsonSource& source_;
  Faults& faults_;
  size_t depth_ = 0;
  std::string key_, top_;
  bool in_events_ = false, any_events_ = false, ours_ = false, has_origin_ = false;
  bool simulated_ = false;
  Event event_;
  std::vector<Slice> slices_;
  std::set<Thread> named_, threads_;
  std::map<std::string, std::pair<uint32_t, uint32_t>> arrows_;
  uint64_t marks_ = 0;
};

}  // namespace

bool LooksLikeChromeJson(std::span<const std::byte> untrusted) {
  const std::string_view text(reinterpret_cast<const char*>(untrusted.data()),
                              std::min<size_t>(untrusted.size(), 4096));
  const size_t begin = text.find('"');
  if (begin == text.npos) return false;
  const std::string_view rest = text.substr(begin + 1);
  constexpr std::string_view kKeys[] = {"traceEvents",       "displayTimeUnit", "otherData",
                                        "systemTraceEvents", "stackFrames",     "schemaVersion"};
  return std::ranges::find(kKeys, rest.substr(0, rest.find('"'))) != std::end(kKeys);
}

ChromeJsonContents CheckChromeJson(const NextBlock& next, Faults& faults) {
  JsonSource source(next);
  Walk walk(source, faults);
  if (Json::sax_parse(JsonIterator(&source), JsonIterator(nullptr), &walk)) walk.Finish();
  return walk.contents();
}

}  // namespace iket::exporter
