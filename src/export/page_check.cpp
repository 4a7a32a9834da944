#include "export/page_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "export/page_block_check.h"
#include "export/page_columns.h"
#include "export/page_elements.h"
#include "export/page_head.h"

namespace iket::exporter {
namespace {

using Json = nlohmann::json;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lines of four numbers: from slice, to slice, whether to its end, edge.
class LinkWalk : public nlohmann::json_sax<Json> {
 public:
  LinkWalk(uint64_t slices, uint64_t edges) : most_{slices, slices, 2, edges + 1} {}

  const std::string& fault() const { return fault_; }
  uint64_t links() const { return numbers_ / 4; }
  void Finish() {
    if (fault_.empty() && numbers_ % 4 != 0) fault_ = "links: the last has not four numbers";
  }

  bool number_unsigned(uint64_t value) override {
    if (depth_ != 1) return Bad("not one array");
    const size_t which = numbers_++ % 4;
    if (value < most_[which]) return true;
    return Bad(fmt::format("number {} of link {} is {}, and must be below {}", which, links(),
                           value, most_[which]));
  }
  bool start_array(size_t) override { return ++depth_ == 1 || Bad("not one array"); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool null() override { return Bad("something that is no number"); }
  bool boolean(bool) override { return null(); }
  bool number_integer(int64_t) override { return null(); }
  bool number_float(double, const std::string&) override { return null(); }
  bool string(std::string&) override { return null(); }
  bool binary(Json::binary_t&) override { return null(); }
  bool start_object(size_t) override { return null(); }
  bool key(std::string&) override { return null(); }
  bool end_object() override { return null(); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Bad(fmt::format("not JSON at byte {} of them", position));
  }

 private:
  bool Bad(std::string_view text) {
    if (fault_.empty()) fault_ = fmt::format("links: {}", text);
    return false;
  }

  const uint64_t most_[4];
  std::string fault_;
  size_t depth_ = 0;
  uint64_t numbers_ = 0;
};

class Check {
 public:
  Check(std::string_view page, Faults& faults, const Progress& progress)
      : page_(page), parts_(TakeApart(page)), faults_(faults), progress_(progress) {}

  PageContents Run() {
    CheckShell();
    if (!parts_.all.empty() && std::ranges::none_of(parts_.all, HasSize)) {
      faults_.Add(parts_.all.front().offset, "version",
                  "written by an older iket, in a form of data that this one does not know: export "
                  "it again");
      return {};
    }
    const auto head_bytes = BytesOf("head");
    const auto head =
        head_bytes ? ReadPageHead(*head_bytes, parts_.Find("head")->offset, faults_) : std::nullopt;
    if (!head) return {};
    if (head->shell != ShellChecksum(parts_.before, parts_.after)) {
      faults_.Add(0, "shell", "what stands around the data is not as it was written");
    }
    PageBlockCheck blocks(*head, faults_);
    bool whole = true;
    for (size_t i = 0; i < head->blocks.size(); ++i) whole &= CheckBlock(i, blocks);
    if (whole) blocks.CheckSums(parts_.Find("head")->offset);
    uint64_t slices = 0;  // one by one
    for (size_t i = 0; i < head->blocks.size() && !head->HasLanes(i); ++i) {
      slices += head->blocks[i].slices;
    }
    CheckLinks(slices, head->edges);
    CheckIds(head->blocks.size());
    return {.counts = {{"launch", head->sms_of_launch.size()},
                       {"warp", blocks.warps()},
                       {"range", blocks.ranges()},
                       {"marker", blocks.marks()}},
            .simulated = head->simulated};
  }

 private:
  static bool HasSize(const PageElement& element) { return element.size.has_value(); }

  void CheckShell() {
    if (const auto policy = PagePolicy(page_)) {
      if (const auto admits = WhatPolicyAdmits(*policy)) {
        faults_.Add(kPageBeginning.size(), "policy",
                    fmt::format("its Content-Security-Policy is too weak: {}", *admits));
      }
    }
    if (parts_.cut) faults_.Add(*parts_.cut, "cut", "the part that begins here does not end");
    for (const std::string_view half : {parts_.before, parts_.after}) {
      const size_t at = half.find("://");
      if (at == half.npos) continue;
      faults_.Add(static_cast<uint64_t>(half.data() + at - page_.data()), "network",
                  "an address, and a page that needs no network has none");
    }
  }

  std::optional<std::string> BytesOf(std::string_view id) {
    const PageElement* element = parts_.Find(id);
    if (element == nullptr) {
      faults_.Add(page_.size(), "cut", fmt::format("the part {} is missing", id));
      return std::nullopt;
    }
    if (progress_) progress_(element->offset, page_.size());
    auto bytes = Unpack(*element);
    if (bytes) return std::move(*bytes);
    faults_.Add(bytes.error().offset, "data", std::move(bytes.error().text));
    return std::nullopt;
  }

  // False if a part of it cannot be read, or something in it is wrong.
  bool CheckBlock(size_t index, PageBlockCheck& blocks) {
    PageBlockParts parts;
    std::array<std::string, PageColumns::kParts> bytes;
    for (size_t part = 0; part < parts.size(); ++part) {
      const std::string id = fmt::format("{}{}", PageColumns::kIds[part], index);
      auto unpacked = BytesOf(id);
      if (!unpacked) return false;
      bytes[part] = std::move(*unpacked);
      parts[part] = {.bytes = bytes[part], .offset = parts_.Find(id)->offset};
    }
    return blocks.Take(parts, index);
  }

  void CheckLinks(uint64_t slices, uint64_t edges) {
    const auto bytes = BytesOf("links");
    if (!bytes) return;
    LinkWalk walk(slices, edges);
    Json::sax_parse(*bytes, &walk);
    walk.Finish();
    if (!walk.fault().empty()) {
      faults_.Add(parts_.Find("links")->offset, "link", walk.fault());
    }
  }

  // Each once, and no other; what is missing has been said.
  void CheckIds(size_t blocks) {
    if (parts_.all.size() <= PageColumns::kParts * blocks + 2) return;
    faults_.Add(parts_.all.front().offset, "count",
                fmt::format("{} parts with data; {} of {} blocks, a head and links there must be",
                            parts_.all.size(), PageColumns::kParts * blocks, blocks));
  }

  const std::string_view page_;
  const PageElements parts_;
  Faults& faults_;
  const Progress& progress_;
};

}  // namespace

bool LooksLikePage(std::span<const std::byte> untrusted) {
  return PagePolicy(TextOf(untrusted)).has_value();
}

PageContents CheckPage(std::span<const std::byte> untrusted, Faults& faults,
                       const Progress& progress) {
  return Check(TextOf(untrusted), faults, progress).Run();
}

}  // namespace iket::exporter
