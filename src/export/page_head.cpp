#include "export/page_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "export/page_elements.h"

namespace iket::exporter {
namespace {

using Json = nlohmann::json;
using Type = Json::value_t;

// More different events than the page has numbers for.
constexpr size_t kMostDeclarations = 65535;

constexpr std::string_view WordOf(Type type) {
  switch (type) {
    case Type::array:
      return "an array";
    case Type::string:
      return "text";
    case Type::boolean:
      return "true or false";
    case Type::number_unsigned:
      return "a whole number";
    case Type::object:
      return "an object";
    default:
      return "a number";
  }
}

bool Is(const Json& value, Type type) {
  if (type == Type::number_float) return value.is_number();
  return value.type() == type;
}

class Reader {
 public:
  Reader(uint64_t offset, Faults& faults) : offset_(offset), faults_(faults) {}

  std::optional<PageHead> Read(std::string_view text) {
    const Json head = Json::parse(text, nullptr, false);
    if (!head.is_object()) {
      Add("json", "head: not JSON, or no object");
      return std::nullopt;
    }
    const uint64_t version = Whole(head, "head", "version");
    if (usable_ && version != kPageVersion) {
      Add("version",
          fmt::format("head: data of version {}, written by {} iket; this one knows {}: {}",
                      version, version < kPageVersion ? "an older" : "a newer", kPageVersion,
                      version < kPageVersion ? "export it again" : "check it with that"));
      return std::nullopt;
    }
    page_.shell = static_cast<uint32_t>(Whole(head, "head", "shell"));
    for (const char* text_key : {"command", "host", "originNs", "damage"}) {
      Member(head, "head", text_key, Type::string);
    }
    page_.excerpt = !Text(head, "head", "filter").empty();
    Member(head, "head", "pid", Type::number_unsigned);
    if (const uint64_t mended = Whole(head, "head", "mended"); mended != 0) {
      Add("nesting", fmt::format("head: {} slices overlapped others and were moved", mended));
    }
    TakeDevices(head);
    TakeDeclarations(head);
    TakeLaunches(head);
    TakeBlocks(head);
    if (head.contains("summary")) TakeSummary(head);
    TakeRows(head);
    for (const Json& value : Table(head, "values")) {
      Member(value, "a value", "name", Type::string);
      PayloadTypeOf(value, "a value");
      Member(value, "a value", "end", Type::boolean);
      ++page_.values;
    }
    for (const Json& edge : Table(head, "edges")) {
      if (!edge.is_string()) Add("type", "head: an edge that is no text");
      ++page_.edges;
    }
    for (const Json& counter : Table(head, "counters")) {
      Member(counter, "a counter", "value", Type::number_unsigned);
      Member(counter, "a counter", "meaning", Type::string);
      Member(counter, "a counter", "fault", Type::boolean);
    }
    for (const Json& kernel : Table(head, "refused")) {
      Member(kernel, "a refused kernel", "kernel", Type::string);
      Member(kernel, "a refused kernel", "why", Type::string);
    }
    if (!usable_) return std::nullopt;
    return std::move(page_);
  }

 private:
  void Add(std::string_view kind, std::string text) { faults_.Add(offset_, kind, std::move(text)); }

  const Json* Member(const Json& object, std::string_view where, const char* key, Type type) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || at == object.end()) {
      Add("key", fmt::format("{} lacks {}", where, key));
    } else if (!Is(*at, type)) {
      Add("type", fmt::format("{}: {} is not {}", where, key, WordOf(type)));
    } else {
      return &*at;
    }
    usable_ = false;
    return nullptr;
  }
  uint64_t Whole(const Json& object, std::string_view where, const char* key) {
    const Json* value = Member(object, where, key, Type::number_unsigned);
    return value != nullptr ? value->get<uint64_t>() : 0;
  }
  std::string Text(const Json& object, std::string_view where, const char* key) {
    const Json* value = Member(object, where, key, Type::string);
    return value != nullptr ? value->get<std::string>() : "";
  }
  bool Flag(const Json& object, std::string_view where, const char* key) {
    const Json* value = Member(object, where, key, Type::boolean);
    return value != nullptr && value->get<bool>();
  }
  const Json& Table(const Json& head, const char* key) {
    static const Json kNothing = Json::array();
    const Json* table = Member(head, "head", key, Type::array);
    return table != nullptr ? *table : kNothing;
  }
  trace::PayloadType PayloadTypeOf(const Json& object, std::string_view where) {
    const uint64_t type = Whole(object, where, "type");
    if (type <= static_cast<uint64_t>(trace::PayloadType::kF64)) {
      return static_cast<trace::PayloadType>(type);
    }
    Add("type", fmt::format("{}: there is no payload type {}", where, type));
    usable_ = false;
    return {};
  }

  void TakeDevices(const Json& head) {
    for (const Json& device : Table(head, "devices")) {
      Member(device, "a device", "name", Type::string);
      page_.simulated |= Flag(device, "a device", "simulated");
      Member(device, "a device", "sms", Type::number_unsigned);
      const Json* clocks = Member(device, "a device", "clocks", Type::array);
      sms_.push_back(clocks != nullptr ? clocks->size() : 0);
      if (clocks != nullptr) {
        for (const Json& clock : *clocks) CheckClock(clock, sms_.size() - 1);
      }
    }
  }
  // A residual, then three numbers a knot, whose times do not fall.
  void CheckClock(const Json& clock, size_t device) {
    const bool whole = clock.is_array() && clock.size() % 3 == 1 &&
                       std::ranges::all_of(clock, [](const Json& n) { return n.is_number(); });
    if (!whole) {
      return Add("clock", fmt::format("device {}: a clock that is no residual and knots", device));
    }
    for (size_t i = 4; i < clock.size(); i += 3) {
      if (clock[i].get<double>() >= clock[i - 3].get<double>() &&
          clock[i + 1].get<double>() >= clock[i - 2].get<double>()) {
        continue;
      }
      return Add("time", fmt::format("device {}: a clock runs backwards", device));
    }
  }

  void TakeDeclarations(const Json& head) {
    for (const Json& row : Table(head, "declarations")) {
      for (const char* key : {"name", "payload", "category", "file"}) {
        Member(row, "a declaration", key, Type::string);
      }
      for (const char* key : {"line", "colour"}) {
        Member(row, "a declaration", key, Type::number_float);
      }
      const uint64_t kind = Whole(row, "a declaration", "kind");
      if (kind > static_cast<uint64_t>(trace::EventKind::kUnknown)) {
        Add("type", fmt::format("a declaration: there is no kind of event {}", kind));
      }
      page_.types.push_back(PayloadTypeOf(row, "a declaration"));
    }
    if (page_.types.size() > kMostDeclarations) {
      Add("count", fmt::format("head: {} different events; a page shows {}", page_.types.size(),
                               kMostDeclarations));
    }
  }

  void TakeLaunches(const Json& head) {
    for (const Json& launch : Table(head, "launches")) {
      const std::string where = fmt::format("launch {}", page_.sms_of_launch.size());
      for (const char* key : {"label", "kernel", "state"}) Member(launch, where, key, Type::string);
      for (const char* key : {"expected", "lost"}) {
        Member(launch, where, key, Type::number_unsigned);
      }
      Member(launch, where, "number", Type::number_float);
      const Json* first = Member(launch, where, "first", Type::number_float);
      const Json* last = Member(launch, where, "last", Type::number_float);
      if (first != nullptr && last != nullptr && last->get<double>() < first->get<double>()) {
        Add("time", fmt::format("{} ends before it begins", where));
      }
      const uint64_t device = Whole(launch, where, "device");
      if (device >= sms_.size()) {
        Add("row", fmt::format("{} is of device {} of {}", where, device, sms_.size()));
      }
      page_.sms_of_launch.push_back(device < sms_.size() ? sms_[device] : 0);
    }
  }

  void TakeRows(const Json& head) {
    using Place = std::tuple<std::string, std::string, std::string, bool, uint64_t>;
    std::map<Place, size_t> rows;
    for (const Json& row : Table(head, "rows")) {
      const bool marks = Flag(row, "a row", "marks");
      Place place{Text(row, "a row", "group"), Text(row, "a row", "lane"),
                  Text(row, "a row", "token"), marks, Whole(row, "a row", "depth")};
      if (!rows.emplace(std::move(place), page_.rows.size()).second) {
        Add("row", fmt::format("head: row {} is there twice", page_.rows.size()));
      }
      page_.rows.push_back({.marks = marks});
    }
    // Ranges of tokens do not nest.
    for (const auto& [place, index] : rows) {
      auto above = place;
      const auto& [group, lane, token, marks, depth] = place;
      if (!token.empty() || marks || depth == 0) continue;
      --std::get<4>(above);
      const auto at = rows.find(above);
      if (at != rows.end()) {
        page_.rows[index].parent = at->second;
      } else if (!page_.excerpt) {
        Add("nesting", fmt::format("head: row {} lies in none of depth {}", index, depth - 1));
      }
    }
  }

  void TakeBlocks(const Json& head) {
    for (const Json& block : Table(head, "blocks")) {
      const bool whole =
          block.is_array() && block.size() == 4 &&
          std::ranges::all_of(block, [](const Json& n) { return n.is_number_unsigned(); });
      if (!whole) {
        Add("type", fmt::format("head: block {} is not four numbers", page_.blocks.size()));
        usable_ = false;
        return;
      }
      page_.blocks.push_back({block[0].get<uint64_t>(), block[1].get<uint64_t>(),
                              block[2].get<uint64_t>(), block[3].get<uint64_t>()});
      if (page_.blocks.back().launch < page_.sms_of_launch.size()) continue;
      Add("row", fmt::format("head: block {} is of launch {} of {}", page_.blocks.size() - 1,
                             page_.blocks.back().launch, page_.sms_of_launch.size()));
      usable_ = false;
    }
  }

  void TakeSummary(const Json& head) {
    const Json* summary = Member(head, "head", "summary", Type::object);
    if (summary == nullptr) return;
    const std::string_view where = "summary";
    Member(*summary, where, "capture", Type::string);
    page_.excerpt |= Flag(*summary, where, "asked");
    Flag(*summary, where, "cut");
    const PageHead::Summary said = {.first_block = Whole(*summary, where, "firstBlock"),
                                    .parts = Whole(*summary, where, "parts"),
                                    .detail_warps = Whole(*summary, where, "detailWarps"),
                                    .warps = Whole(*summary, where, "warps"),
                                    .detail_slices = Whole(*summary, where, "detailSlices"),
                                    .slices = Whole(*summary, where, "slices")};
    page_.summary = said;
    if (said.first_block > page_.blocks.size()) {
      Add("row", fmt::format("summary: it begins with block {} of {}", said.first_block,
                             page_.blocks.size()));
    }
    if (said.detail_warps > said.warps || said.detail_slices > said.slices) {
      Add("count", "summary: more is shown one by one than there is");
    } else if (const uint64_t doubtful = Whole(*summary, where, "doubtful");
               doubtful > said.slices - said.detail_slices) {
      Add("count", fmt::format("summary: {} of {} slices are doubtful", doubtful,
                               said.slices - said.detail_slices));
    }
    Whole(*summary, where, "arrows");
    const auto window = summary->find("window");
    if (window == summary->end()) return;
    const bool whole =
        window->is_array() && window->size() == 2 &&
        std::ranges::all_of(*window, [](const Json& n) { return n.is_number() || n.is_null(); });
    if (!whole) Add("type", "summary: window is not two times");
  }

  const uint64_t offset_;
  Faults& faults_;
  PageHead page_;
  std::vector<size_t> sms_;  // by device
  bool usable_ = true;
};

}  // namespace

std::optional<PageHead> ReadPageHead(std::string_view untrusted_json, uint64_t offset,
                                     Faults& faults) {
  return Reader(offset, faults).Read(untrusted_json);
}

}  // namespace iket::exporter
