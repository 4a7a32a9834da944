#include "simdriver/graph.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

namespace iket::simdriver {
namespace {

std::atomic<uint64_t> g_next_node{1};

template <typename T>
bool Contains(const std::vector<T*>& list, const T* element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

OperationPtr InstantiatedOf(const OperationPtr& operation) {
  OperationPtr instantiated = operation->Instantiated();
  return instantiated != nullptr ? instantiated : operation;
}

}  // namespace

Graph::~Graph() {
  for (const auto& node : nodes_) Nodes::Get().Remove(Nodes::HandleOf(node.get()));
}

GraphNode& Graph::Add(OperationPtr operation, const std::vector<GraphNode*>& dependencies) {
  auto node = std::make_shared<GraphNode>();
  node->number = g_next_node.fetch_add(1);
  node->type = operation->type();
  node->operation = std::move(operation);
  node->graph = weak_from_this();
  nodes_.push_back(node);
  Nodes::Get().Add(node);
  for (GraphNode* dependency : dependencies) Connect(*dependency, *node);
  return *node;
}

void Graph::Remove(GraphNode& node) {
  for (GraphNode* before : node.dependencies) std::erase(before->dependents, &node);
  for (GraphNode* after : node.dependents) std::erase(after->dependencies, &node);
  Nodes::Get().Remove(Nodes::HandleOf(&node));
  std::erase_if(nodes_, [&](const auto& held) { return held.get() == &node; });
}

bool Graph::Owns(const GraphNode& node) const { return node.graph.lock().get() == this; }

bool Graph::Connect(GraphNode& from, GraphNode& to) {
  if (!Owns(from) || !Owns(to) || &from == &to || Contains(to.dependencies, &from)) return false;
  to.dependencies.push_back(&from);
  from.dependents.push_back(&to);
  return true;
}

bool Graph::Disconnect(GraphNode& from, GraphNode& to) {
  return std::erase(to.dependencies, &from) > 0 && std::erase(from.dependents, &to) > 0;
}

std::vector<GraphNode*> Graph::InOrder() const {
  std::map<const GraphNode*, size_t> missing;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes_) {
    missing[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (GraphNode* next : order[i]->dependents) {
      if (--missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

std::shared_ptr<Graph> Graph::Clone() const {
  auto clone = std::make_shared<Graph>();
  std::map<const GraphNode*, GraphNode*> twins;
  for (const auto& node : nodes_) {
    GraphNode& twin = clone->Add(node->operation, {});
    twins[node.get()] = &twin;
    clone->originals_.emplace_back(twin.number, node->number);
  }
  for (const auto& node : nodes_) {
    for (const GraphNode* before : node->dependencies) {
      clone->Connect(*twins[before], *twins[node.get()]);
    }
  }
  return clone;
}

uint64_t Graph::OriginalOf(const GraphNode& node) const {
  for (const auto& [here, there] : originals_) {
    if (here == node.number) return there;
  }
  return 0;
}

GraphExec::GraphExec(const Graph& graph, unsigned long long flags) : flags_(flags) {
  std::map<const GraphNode*, size_t> index;
  for (const GraphNode* node : graph.InOrder()) {
    index[node] = steps_.size();
    Step step{.node = node->number, .operation = InstantiatedOf(node->operation)};
    for (const GraphNode* before : node->dependencies) step.after.push_back(index[before]);
    steps_.push_back(std::move(step));
  }
}

OperationPtr GraphExec::Snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<OperationPtr> operations;
  for (const Step& step : steps_) {
    if (step.enabled) operations.push_back(step.operation);
  }
  return std::make_shared<GraphOperation>(std::move(operations));
}

bool GraphExec::Replace(uint64_t node, const OperationPtr& operation) {
  const std::lock_guard lock(mutex_);
  for (Step& step : steps_) {
    if (step.node != node || step.operation->type() != operation->type()) continue;
    step.operation = InstantiatedOf(operation);
    return true;
  }
  return false;
}

bool GraphExec::SetEnabled(uint64_t node, bool enabled) {
  const std::lock_guard lock(mutex_);
  for (Step& step : steps_) {
    if (step.node != node) continue;
    step.enabled = enabled;
    return true;
  }
  return false;
}

std::unique_ptr<bool> GraphExec::IsEnabled(uint64_t node) const {
  const std::lock_guard lock(mutex_);
  for (const Step& step : steps_) {
    if (step.node == node) return std::make_unique<bool>(step.enabled);
  }
  return nullptr;
}

CUgraphExecUpdateResult GraphExec::Update(const Graph& graph, GraphNode** culprit) {
  const std::lock_guard lock(mutex_);
  const std::vector<GraphNode*> order = graph.InOrder();
  *culprit = nullptr;
  if (order.size() != steps_.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  std::map<const GraphNode*, size_t> index;
  for (size_t i = 0; i < order.size(); ++i) {
    *culprit = order[i];
    index[order[i]] = i;
    if (order[i]->type != steps_[i].operation->type()) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    std::vector<size_t> after;
    for (const GraphNode* before : order[i]->dependencies) after.push_back(index[before]);
    if (after != steps_[i].after) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  *culprit = nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    steps_[i].operation = InstantiatedOf(order[i]->operation);
    steps_[i].node = order[i]->number;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

std::shared_ptr<const Operation> GraphOperation::Instantiated() const {
  std::vector<OperationPtr> steps;
  steps.reserve(steps_.size());
  for (const OperationPtr& step : steps_) steps.push_back(InstantiatedOf(step));
  return std::make_shared<GraphOperation>(std::move(steps), graph_);
}

CUresult GraphOperation::Run() const {
  for (const OperationPtr& step : steps_) {
    const CUresult result = step->Run();
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace iket::simdriver
