// graph_nodes.h: nodes by their handles.
#pragma once

#include <cstddef>
#include <vector>

#include "simdriver/graph.h"

namespace iket::simdriver {

// A graph's nodes by their handles; false if one is none, or of another graph.
inline bool FindNodes(const Graph& graph, const CUgraphNode* handles, size_t count,
                      std::vector<GraphNode*>* nodes) {
  if (count > 0 && handles == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    const auto node = Nodes::Get().Find(handles[i]);
    if (node == nullptr || !graph.Owns(*node)) return false;
    nodes->push_back(node.get());
  }
  return true;
}

}  // namespace iket::simdriver
