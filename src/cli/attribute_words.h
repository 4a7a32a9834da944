// attribute_words.h: what declarations say beyond a name, in words and in JSON.
//
// The same of code (patch::Attribute, patch::Edge) and of captures (capture::Attribute,
// capture::DeclaredEdge).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cli/event_words.h"
#include "export/json_writer.h"
#include "ring/event_kind.h"

namespace iket::cli {

// A column is as wide as its widest text: what nobody would read to its end is cut.
inline std::string Clipped(std::string text) {
  constexpr size_t kMost = 200;
  if (text.size() > kMost) text.replace(kMost, std::string::npos, "...");
  return text;
}

// "i32 m, i32 n" of a payload and attributes that name values; the type alone where nothing does.
template <typename Attributes>
std::string ValuesText(capture::PayloadType payload, const Attributes& attributes) {
  std::string text = PayloadText(payload);
  for (const auto& attribute : attributes) {
    if (attribute.what == ring::AttributeKind::kValueName) text += " " + attribute.text;
    if (attribute.what != ring::AttributeKind::kValue) continue;
    text += ", " + PayloadText(static_cast<capture::PayloadType>(attribute.number)) + " " +
            attribute.text;
  }
  return Clipped(std::move(text));
}
// "lane wgmma, group producer, category io" of attributes that say so.
template <typename Attributes>
std::string RowText(const Attributes& attributes) {
  std::string text;
  for (const auto& attribute : attributes) {
    std::string_view what;
    if (attribute.what == ring::AttributeKind::kLane) what = "lane ";
    if (attribute.what == ring::AttributeKind::kGroup) what = "group ";
    if (attribute.what == ring::AttributeKind::kCategory) what = "category ";
    if (what.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(what) + attribute.text;
  }
  return Clipped(std::move(text));
}
// "gemm: tma -> mma, smem[s], by mbarrier".
template <typename Edge>
std::string EdgeText(const Edge& edge) {
  return edge.dag + ": " + edge.from + " -> " + edge.to +
         (edge.label.empty() ? "" : ", " + edge.label) +
         (edge.via.empty() ? "" : ", by " + edge.via);
}

// Values, lane, group and category, as far as there are any.
template <typename Attributes>
void WriteAttributes(exporter::JsonWriter& json, const Attributes& attributes) {
  {
    auto values = json.Array("values");
    for (const auto& attribute : attributes) {
      if (attribute.what == ring::AttributeKind::kValueName) json.Value(attribute.text);
      if (attribute.what != ring::AttributeKind::kValue) continue;
      json.Value(PayloadText(static_cast<capture::PayloadType>(attribute.number)) + " " +
                 attribute.text);
    }
  }
  // Of several of a kind the last counts.
  std::string_view lane, group, category;
  for (const auto& attribute : attributes) {
    if (attribute.what == ring::AttributeKind::kLane) lane = attribute.text;
    if (attribute.what == ring::AttributeKind::kGroup) group = attribute.text;
    if (attribute.what == ring::AttributeKind::kCategory) category = attribute.text;
  }
  if (!lane.empty()) json.Member("lane", lane);
  if (!group.empty()) json.Member("group", group);
  if (!category.empty()) json.Member("category", category);
}

template <typename Edges>
void WriteEdges(exporter::JsonWriter& json, const Edges& edges) {
  auto array = json.Array("edges");
  for (const auto& edge : edges) {
    auto entry = json.Object();
    json.Member("dag", edge.dag);
    json.Member("from", edge.from);
    json.Member("to", edge.to);
    json.Member("label", edge.label);
    json.Member("via", edge.via);
  }
}

}  // namespace iket::cli
