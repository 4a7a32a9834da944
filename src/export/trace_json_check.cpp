#include "export/trace_json_check.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "export/json_source.h"
#include "export/trace_json_schema.h"

namespace iket::exporter {
namespace {

using schema::Key;
using schema::Node;
using schema::Type;
using Json = nlohmann::json;

// Nobody's schema goes deeper; without a bound a file of brackets alone would be remembered.
constexpr size_t kMostDepth = 64;

// Walks the document along the schema; the callbacks are those that the parser wants.
class Walk : public nlohmann::json_sax<Json> {
 public:
  Walk(const JsonSource& source, Faults& faults) : source_(source), faults_(faults) {
    frames_.push_back({.node = Node::kDocument});
  }

  bool null() override { return Other("null"); }
  bool boolean(bool value) override {
    Expect(Type::kTruth, "a truth value");
    const Frame& frame = frames_.back();
    if (frame.node == Node::kIket && frame.key != nullptr && frame.key->name == "simulated") {
      simulated_ = value;
    }
    return true;
  }
  bool number_float(double, const std::string&) override {
    return Other("a number with a fraction");
  }
  bool binary(Json::binary_t&) override { return Other("bytes"); }
  bool number_integer(int64_t value) override { return Integer(value, false); }
  bool number_unsigned(uint64_t value) override {
    return Integer(static_cast<int64_t>(value), value > INT64_MAX);
  }
  bool string(std::string&) override {
    Expect(Type::kText, "a text");
    if (Inside() == Node::kStrings) ++strings_;
    return true;
  }

  bool key(std::string& name) override {
    Frame& frame = frames_.back();
    const std::span<const Key> keys = schema::KeysOf(frame.node);
    if (frame.node == Node::kGraphLaunches) {
      frame.key = &keys.front();
      return true;
    }
    const auto found = std::ranges::find(keys, name, &Key::name);
    frame.key = found == keys.end() ? nullptr : &*found;
    if (frame.key == nullptr) return true;
    const uint32_t bit = 1u << (found - keys.begin());
    if ((frame.seen & bit) != 0) Add("key", fmt::format("{} has {} twice", Named(), name));
    frame.seen |= bit;
    return true;
  }

  bool start_object(size_t) override { return Enter(Type::kObject, "an object"); }
  bool start_array(size_t) override { return Enter(Type::kArray, "an array"); }
  bool end_object() override {
    const Frame& frame = frames_.back();
    const std::span<const Key> keys = schema::KeysOf(frame.node);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].required && (frame.seen >> i & 1) == 0) {
        Add("key", fmt::format("{} lacks {}", Named(), keys[i].name));
      }
    }
    EndObject(frame);
    frames_.pop_back();
    return true;
  }
  bool end_array() override {
    const Frame& frame = frames_.back();
    const auto require = [&](bool holds, std::string_view what) {
      if (!holds) Add("length", fmt::format("{} has {}, not {}", Named(), frame.elements, what));
    };
    if (frame.node == Node::kPlaces) require(frame.elements == 2, "two elements");
    if (frame.node == Node::kCta) require(frame.elements == 3, "three elements");
    if (frame.node == Node::kInternalEvents) require(frame.elements == 2, "two events");
    if (frame.node == Node::kOnlyEvents) require(frame.elements == 1, "one event");
    frames_.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    // What the library says behind its own name of the error and its place.
    constexpr size_t kMostWords = 200;
    std::string_view said = error.what();
    for (const std::string_view head : {"] ", "syntax error "}) {
      const size_t at = said.find(head);
      if (at != said.npos) said.remove_prefix(at + head.size());
    }
    Add("json", fmt::format("not JSON: {}", said.substr(0, kMostWords)));
    return false;
  }

  // After the document: rows that were named must exist.
  void Finish() {
    Within(most_location_, locations_, "locationTable");
    Within(most_string_, strings_, "stringTable");
  }
  TraceJsonContents contents() const {
    return {.counts = {{"launch", launches_},
                       {"warp", lifetimes_},
                       {"range", ranges_},
                       {"marker", markers_}},
            .simulated = simulated_};
  }

 private:
  struct Frame {
    Node node = Node::kAny;
    const Key* key = nullptr;  // whose value is next; null: one that we do not know
    uint32_t seen = 0;         // bits of the node's keys
    uint64_t elements = 0;     // of an array
    int64_t start = 0, end = 0;
    bool has_payload_type = false, has_payload = false;
  };
  // The highest row of a table that was named, and where.
  struct Row {
    int64_t row = -1;
    uint64_t offset = 0;
  };

  Node Inside() const { return frames_.back().node; }
  std::string_view Named() const { return schema::NameOf(Inside()); }
  // Behind the token at hand; the parser has read one byte more of a number.
  uint64_t Here() const { return source_.offset(); }
  void Add(std::string_view kind, std::string text) { faults_.Add(Here(), kind, std::move(text)); }

  static bool IsArray(Node node) { return node != Node::kAny && schema::KeysOf(node).empty(); }

  // The value of type `type` that comes now: is it the wanted one? What it is, if it has an inside.
  Node Expect(Type type, std::string_view what) {
    Frame& frame = frames_.back();
    if (frame.node == Node::kAny) return Node::kAny;
    schema::Element wanted{};
    std::string_view name = Named();
    if (IsArray(frame.node)) {
      ++frame.elements;
      wanted = schema::ElementOf(frame.node);
    } else if (frame.key == nullptr) {
      return Node::kAny;
    } else {
      wanted = {frame.key->type, frame.key->inside};
      name = frame.key->name;
    }
    if (type == wanted.type) return wanted.inside;
    Add("type", fmt::format("{} where {} stands", what, name));
    return Node::kAny;
  }
  bool Other(std::string_view what) {
    Frame& frame = frames_.back();
    if (IsArray(frame.node)) ++frame.elements;
    if (IsArray(frame.node) || frame.key != nullptr) {
      Add("type", fmt::format("{} where {} stands", what,
                              frame.key != nullptr ? frame.key->name : Named()));
    }
    return true;
  }
  bool Enter(Type type, std::string_view what) {
    if (frames_.size() > kMostDepth) {
      Add("json", "nested too deep; what follows was not read");
      return false;
    }
    const Node node = Expect(type, what);
    switch (node) {
      case Node::kLaunch:
        ++launches_;
        break;
      case Node::kLifetime:
        ++lifetimes_;
        break;
      case Node::kRange:
      case Node::kUnclosedRange:
        ++ranges_;
        break;
      case Node::kMarker:
        ++markers_;
        break;
      case Node::kLocation:
        ++locations_;
        break;
      default:
        break;
    }
    frames_.push_back({.node = node});
    return true;
  }

  bool Integer(int64_t value, bool huge) {
    Expect(Type::kInteger, "a number");
    Frame& frame = frames_.back();
    if (frame.node == Node::kPlaces) NameRow(most_location_, value, huge);
    if (frame.key == nullptr) return true;
    const std::string_view key = frame.key->name;
    if (key == "locIdx") NameRow(most_location_, value, huge);
    if (key == "markerNameIdx" || key == "rangeNameIdx") NameRow(most_string_, value, huge);
    if (key == "startTs") frame.start = value;
    if (key == "endTs") frame.end = value;
    if (key == "payloadType") frame.has_payload_type = true;
    if (key == "payloadVal") frame.has_payload = true;
    if (frame.node == Node::kMeta && value != 1) {
      Add("version", fmt::format("version {} of the schema; this iket knows version 1", value));
    }
    return true;
  }
  void NameRow(Row& most, int64_t row, bool huge) {
    if (huge || row < 0) {
      Add("row", fmt::format("row {} of a table", huge ? "above 2^63" : std::to_string(row)));
    } else if (row > most.row) {
      most = {row, Here()};
    }
  }
  void Within(const Row& most, uint64_t rows, std::string_view table) {
    if (most.row < 0 || static_cast<uint64_t>(most.row) < rows) return;
    faults_.Add(most.offset, "row",
                fmt::format("row {} of {}, which has {}", most.row, table, rows));
  }
  void EndObject(const Frame& frame) {
    if ((frame.node == Node::kRange || frame.node == Node::kUnclosedRange ||
         frame.node == Node::kLifetime) &&
        frame.end < frame.start) {
      Add("time",
          fmt::format("{} ends at {}, before it begins at {}", Named(), frame.end, frame.start));
    }
    if (frame.has_payload != frame.has_payload_type) {
      Add("key", fmt::format("{} has one of payloadType and payloadVal alone", Named()));
    }
  }

  const JsonSource& source_;
  Faults& faults_;
  std::vector<Frame> frames_;
  uint64_t launches_ = 0, lifetimes_ = 0, ranges_ = 0, markers_ = 0, locations_ = 0, strings_ = 0;
  Row most_location_, most_string_;
  bool simulated_ = false;
};

}  // namespace

TraceJsonContents CheckTraceJson(const NextBlock& next, Faults& faults) {
  JsonSource source(next);
  Walk walk(source, faults);
  if (Json::sax_parse(JsonIterator(&source), JsonIterator(nullptr), &walk)) walk.Finish();
  return walk.contents();
}

}  // namespace iket::exporter
