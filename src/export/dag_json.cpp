#include "export/dag_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "export/json_writer.h"

namespace iket::exporter {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostEdges = 10'000;

trace::StringId IdOf(const std::string& text, trace::Model& model) {
  const auto found = std::ranges::find(model.strings, text);
  if (found == model.strings.end()) {
    model.strings.push_back(text);
    return static_cast<trace::StringId>(model.strings.size() - 1);
  }
  return static_cast<trace::StringId>(found - model.strings.begin());
}

// What is wrong with the value of a key, or "".
std::string FaultOfText(const Json& object, const char* key, bool required) {
  const auto found = object.find(key);
  if (found == object.end() || (!required && found->is_null())) {
    return required ? fmt::format("has no \"{}\"", key) : "";
  }
  if (!found->is_string()) return fmt::format("has a \"{}\" that is no text", key);
  if (required && found->get_ref<const std::string&>().empty()) {
    return fmt::format("has an empty \"{}\"", key);
  }
  return "";
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// What is wrong with the document, or "".
std::string FaultOf(const Json& dag) {
  if (dag.is_discarded()) return "it is no JSON";
  if (!dag.is_object()) return "it is no object";
  if (std::string fault = FaultOfText(dag, "name", true); !fault.empty()) return "it " + fault;
  const auto edges = dag.find("edges");
  if (edges == dag.end() || !edges->is_array()) return "it has no list \"edges\"";
  if (edges->size() > kMostEdges) {
    return fmt::format("it has {} edges, more than {}", edges->size(), kMostEdges);
  }
  for (size_t i = 0; i < edges->size(); ++i) {
    const Json& edge = (*edges)[i];
    if (!edge.is_object()) return fmt::format("edge {} is no object", i);
    for (const auto& [key, required] : {std::pair("source", true), std::pair("target", true),
                                        std::pair("label", false), std::pair("via", false)}) {
      if (std::string fault = FaultOfText(edge, key, required); !fault.empty()) {
        return fmt::format("edge {} {}", i, fault);
      }
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> DagNames(const trace::Model& model) {
  std::vector<std::string> names;
  for (const trace::DeclaredEdge& edge : model.edges) {
    const std::string& name = model.String(edge.dag);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string DagJson(const trace::Model& model, const std::string& name) {
  std::vector<const trace::DeclaredEdge*> edges;
  std::set<std::string> regions;
  for (const trace::DeclaredEdge& edge : model.edges) {
    if (model.String(edge.dag) != name) continue;
    edges.push_back(&edge);
    regions.insert({model.String(edge.from), model.String(edge.to)});
  }
  JsonWriter json;
  {
    auto all = json.Object();
    json.Member("name", name);
    {
      auto list = json.Array("regions");
      for (const std::string& region : regions) json.Value(region);
    }
    auto list = json.Array("edges");
    for (const trace::DeclaredEdge* edge : edges) {
      auto object = json.Object();
      json.Member("source", model.String(edge->from));
      json.Member("target", model.String(edge->to));
      if (edge->label != 0) json.Member("label", model.String(edge->label));
      if (edge->via != 0) json.Member("via", model.String(edge->via));
    }
  }
  return json.text() + "\n";
}

std::string EdgeLabel(const trace::Model& model, const trace::DeclaredEdge& edge) {
  std::string text = edge.dag == 0 ? "" : model.String(edge.dag) + ": ";
  text += model.String(edge.from) + " -> " + model.String(edge.to);
  if (edge.label != 0) text += ", " + model.String(edge.label);
  if (edge.via != 0) text += ", by " + model.String(edge.via);
  return text;
}

Result<void> AddDag(std::string_view untrusted, const std::string& name, trace::Model& model) {
  const Json dag = Json::parse(untrusted.begin(), untrusted.end(), nullptr, false);
  if (const std::string fault = FaultOf(dag); !fault.empty()) {
    return Fail(ErrorKind::kBadInput,
                "{}: not a graph of dependencies: {}; it must be as dag.save() writes it: "
                R"({{"name": .., "edges": [{{"source": .., "target": ..}}]}})",
                name, fault);
  }
  const trace::StringId id = IdOf(dag["name"].get<std::string>(), model);
  const auto key = [](const trace::DeclaredEdge& edge) {
    return std::tuple(edge.dag, edge.from, edge.to, edge.label, edge.via);
  };
  for (const Json& edge : dag["edges"]) {
    const trace::DeclaredEdge added{.dag = id,
                                    .from = IdOf(TextOf(edge, "source"), model),
                                    .to = IdOf(TextOf(edge, "target"), model),
                                    .label = IdOf(TextOf(edge, "label"), model),
                                    .via = IdOf(TextOf(edge, "via"), model)};
    const bool known = std::ranges::any_of(
        model.edges, [&](const trace::DeclaredEdge& had) { return key(had) == key(added); });
    if (!known) model.edges.push_back(added);
  }
  return {};
}

}  // namespace iket::exporter
