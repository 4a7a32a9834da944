// summary.h: the few lines that `iket profile` ends with.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/clock_summary.h"
#include "cli/load.h"
#include "session/selection.h"

namespace iket::cli {

// What the person calls the parts of the selection, for messages.
struct SelectionNames {
  const char* kernels = "--kernel";
  const char* events = "--range-filter";
  const char* rules = "--config";
};

// Sums over the captures of one run: one for each process that used a GPU.
class Summary {
 public:
  // `memory_cap`: of device memory, what rings were allowed; 0: nobody said.
  explicit Summary(uint64_t memory_cap = 0, SelectionNames names = {})
      : memory_cap_(memory_cap), option_(names) {}

  void Add(const Loaded& loaded);
  void AddFile(const std::string& path, uint64_t bytes) { files_.push_back({path, bytes}); }
  // One that is there.
  void AddFile(const std::string& path);

  // True if nothing was lost, refused, cut off or left undecoded.
  bool IsWhole() const;

  // Kernels, launches, events, the five longest ranges and those that nobody closed, device memory,
  // files; a line more for each refusal and each thing that is not as it should be. Aligned; ends
  // with a newline.
  std::string Text() const;
  // A sentence for each rule of the selection whose part of a name no kernel with marks has.
  std::vector<std::string> UnusedRules(const session::Selection& selection) const;
  // Says of a selection of events that it is found in no name, and which names there are. Empty: it
  // is found in one, or there was nothing to select from.
  std::string WhyNoEvents(const session::Selection& selection) const;
  // Why a selection left nothing, if it did: what there was to select from. Empty: it did not.
  std::string WhyNothing(const session::Selection& selection) const;
  std::string Json() const;

 private:
  struct Range {
    double total_ns = 0;
    uint64_t count = 0;  // closed ones
    uint64_t open = 0;   // when their warps were seen last
  };
  struct File {
    std::string path;
    uint64_t bytes;
  };
  struct Refusal {
    std::string kernel;
    std::string reason;
    uint64_t count = 0;  // the same kernel in several processes, or several images
  };

  using NamedRanges = std::vector<std::pair<std::string, Range>>;
  // The first few by `key`, of those of which `count` is not 0.
  template <typename Key>
  NamedRanges Most(uint64_t Range::* count, Key Range::* key) const;
  NamedRanges LongestRanges() const { return Most(&Range::count, &Range::total_ns); }
  NamedRanges OpenRanges() const { return Most(&Range::open, &Range::open); }

  std::vector<std::string> devices_;  // each once
  bool simulated_ = false;            // one of them is software
  uint64_t kernels_ = 0;              // that record
  // Kernels that were not to record, each once: all, and those of which no event was to be.
  std::vector<std::string> left_out_, without_events_;
  std::set<std::string> events_left_out_, events_wanted_;  // names
  uint64_t sites_ = 0, sites_left_out_ = 0;                // of kernels that are not refused
  uint64_t launches_left_out_ = 0;
  uint64_t launches_ = 0, complete_ = 0, partial_ = 0, unknown_ = 0;
  uint64_t by_graphs_ = 0, replays_known_ = 0;
  uint64_t running_ = 0;  // warps that had not ended when the rings were read
  uint64_t warps_ = 0;
  uint64_t events_ = 0;
  uint64_t records_lost_ = 0, records_written_ = 0;
  bool lost_is_lower_bound_ = false;
  uint64_t device_memory_bytes_ = 0;
  uint64_t memory_cap_ = 0;
  SelectionNames option_;
  uint64_t sink_contexts_ = 0;  // without rings
  uint64_t contexts_ = 0;
  std::vector<std::string> names_;    // mangled, of kernels that were seen
  std::vector<std::string> filters_;  // each once
  ClockSummary clocks_;
  std::map<std::string, Range> ranges_;  // by name
  std::vector<Refusal> refusals_;
  std::vector<std::string> damage_;
  std::vector<std::string> counted_;  // captures that are too large to be decoded
  std::vector<File> files_;
};

}  // namespace iket::cli
