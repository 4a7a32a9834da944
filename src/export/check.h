// check.h: is an exported file what it claims to be?
//
// For .pftrace, .trace.json and .chrome.json, of ours or of another tool, and our .csv, each plain
// or through gzip, and our .sqlite and .html. But for these two the file is read as a stream:
// memory is one gzip member and what must be remembered of tracks and sequences, bounded by the
// file's size; of a page it is one of its parts. Any bytes give an answer, never a crash. Cost: 5
// ns a byte of .pftrace and 8 of JSON, unpacked (one core of a Xeon, family 6 model 207).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "export/sink.h"

namespace iket::exporter {

// What is wrong with a file, and where. After kMostFaults they are only counted.
class Faults {
 public:
  static constexpr size_t kMostFaults = 20;

  struct Fault {
    // In the file, or in what a compressed one unpacks to; of kind "gzip" always in the file.
    uint64_t offset;
    std::string kind;  // a key: "track"
    std::string text;
  };

  void Add(uint64_t offset, std::string_view kind, std::string text);
  // One from which all that follows: what is added later is neither kept nor counted.
  void AddLast(uint64_t offset, std::string_view kind, std::string text);
  const std::vector<Fault>& first() const { return first_; }
  uint64_t count() const { return count_; }

 private:
  std::vector<Fault> first_;
  uint64_t count_ = 0;
  bool closed_ = false;
};

// How much was found of what: {"packet", 12}.
using Counts = std::vector<std::pair<std::string_view, uint64_t>>;

struct CheckedExport {
  std::string_view
      kind;  // as formats are called, "pftrace"; empty if neither contents nor name say it
  bool compressed = false;
  bool simulated = false;  // it says to be of a software device
  Counts counts;
  Faults faults;
};

// True if the bytes begin like something that CheckExport knows, or are gzip.
bool LooksLikeExport(std::span<const std::byte> untrusted);

// Error (kBadInput): neither kind. A file of which nothing can be read because it is empty, or
// damaged as gzip, has that as its fault. `name` is for messages, and says the kind of such a file;
// `progress` may be empty.
Result<CheckedExport> CheckExport(std::span<const std::byte> untrusted, const std::string& name,
                                  const Progress& progress = {});

}  // namespace iket::exporter
