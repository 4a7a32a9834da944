// graph.h: operations with an order between them, and what an instantiated graph is.
//
// A graph holds its nodes; a node's dependencies are nodes of the same graph. An executable graph
// is the operations in one order that respects the dependencies; a launch runs them one after
// another on the stream's worker. (A GPU may run branches side by side; nothing that a program may
// rely on differs.)
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simdriver/cuda_api.h"
#include "simdriver/handles.h"
#include "simdriver/operation.h"

namespace iket::simdriver {

class Graph;

struct GraphNode {
  uint64_t number = 0;  // unique in the process
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OperationPtr operation;
  std::weak_ptr<Graph> graph;
  std::vector<GraphNode*> dependencies;  // in the order in which they were added
  std::vector<GraphNode*> dependents;
};
using Nodes = HandleTable<GraphNode, CUgraphNode>;

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  ~Graph();

  // `dependencies` must be nodes of this graph.
  GraphNode& Add(OperationPtr operation, const std::vector<GraphNode*>& dependencies);
  void Remove(GraphNode& node);
  bool Owns(const GraphNode& node) const;
  // False if the edge is there already, or its ends are not nodes of this graph.
  bool Connect(GraphNode& from, GraphNode& to);
  bool Disconnect(GraphNode& from, GraphNode& to);

  const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }
  // Nodes in an order that respects the edges: the order in which they were added, as far as that
  // goes. Shorter than nodes() if the edges form a cycle.
  std::vector<GraphNode*> InOrder() const;
  // The same nodes, in the same order, with the same operations and edges.
  std::shared_ptr<Graph> Clone() const;

  // For nodes that Clone made: the number of the original.
  uint64_t OriginalOf(const GraphNode& node) const;

 private:
  std::vector<std::shared_ptr<GraphNode>> nodes_;
  std::vector<std::pair<uint64_t, uint64_t>> originals_;  // {number here, number there}
};
using Graphs = HandleTable<Graph, CUgraph>;

class GraphExec {
 public:
  struct Step {
    uint64_t node = 0;  // number of the node that it was made from
    OperationPtr operation;
    std::vector<size_t> after = {};  // indices of steps
    bool enabled = true;
  };
  explicit GraphExec(const Graph& graph, unsigned long long flags);

  unsigned long long flags() const { return flags_; }
  // All that is enabled, as one operation; later changes do not reach it.
  OperationPtr Snapshot() const;
  // False if the graph had no such node, or of another type.
  bool Replace(uint64_t node, const OperationPtr& operation);
  bool SetEnabled(uint64_t node, bool enabled);
  // Null if there is no such node.
  std::unique_ptr<bool> IsEnabled(uint64_t node) const;
  // Takes the operations of a graph of the same shape. Otherwise says what differs, and where.
  CUgraphExecUpdateResult Update(const Graph& graph, GraphNode** culprit);

 private:
  mutable std::mutex mutex_;
  std::vector<Step> steps_;
  unsigned long long flags_;
};
using GraphExecs = HandleTable<GraphExec, CUgraphExec>;

// A node without work.
class EmptyOperation : public Operation {
 public:
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EMPTY; }
  CUresult Run() const override { return CUDA_SUCCESS; }
};

// A graph as one operation: a child node, or a launch.
class GraphOperation : public Operation {
 public:
  explicit GraphOperation(std::vector<OperationPtr> steps, std::shared_ptr<Graph> graph = nullptr)
      : steps_(std::move(steps)), graph_(std::move(graph)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  CUresult Run() const override;
  std::shared_ptr<const Operation> Instantiated() const override;
  // Of a child node; null for a launch.
  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  std::vector<OperationPtr> steps_;
  std::shared_ptr<Graph> graph_;
};

}  // namespace iket::simdriver
