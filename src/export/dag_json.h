// dag_json.h: declared dependencies as `.iket_dag.json`, the file that `dag.save()` of CuTe DSL's
// iket writes: {"name", "regions": [..], "edges": [{"source", "target", "label"?, "via"?}]}.
//
// A file has one graph, and a model edges of any number of them. Regions are the names that edges
// have, sorted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/model.h"

namespace iket::exporter {

inline constexpr std::string_view kDagExtension = "iket_dag.json";

// The names of the model's graphs, each once, in their order.
std::vector<std::string> DagNames(const trace::Model& model);
std::string DagJson(const trace::Model& model, const std::string& name);

// "gemm: tma -> mma, smem[s], by mbarrier".
std::string EdgeLabel(const trace::Model& model, const trace::DeclaredEdge& edge);

// Adds the edges of such a file to the model's; those that it has already are not there twice.
// `name` is for messages. Error (kBadInput): no such file.
Result<void> AddDag(std::string_view untrusted, const std::string& name, trace::Model& model);

}  // namespace iket::exporter
