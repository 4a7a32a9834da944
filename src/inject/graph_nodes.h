// graph_nodes.h: the kernel nodes of a graph, as the driver tells them.
#pragma once

#include <cuda.h>

#include <map>
#include <vector>

#include "capture/content.h"

namespace iket::inject {

struct GraphNodes {
  // Those that launch a traced kernel; `graph` and `since` are left to the caller.
  std::vector<capture::GraphNode> kernels;
  // The numbers of kernel nodes and of nodes with a child graph, by which calls name them.
  std::map<CUgraphNode, uint32_t> numbers;
  uint32_t end = 0;  // the number behind the last node's
  // It has nodes that could not be asked for, or whose contents nobody tells: the bodies of
  // conditional nodes that were not seen when they were made.
  bool unstated = false;
};

// Asks the driver, children and bodies included. Nodes count from `first`. Throws for want of
// memory only.
GraphNodes AskGraphNodes(CUgraph graph, uint32_t first = 0);

// A conditional node was made: from now on these graphs are its bodies.
void RememberBodies(CUgraphNode node, const CUgraph* bodies, size_t count) noexcept;

// The traced kernel that a node's parameters name; false if it is none.
bool FindNodeKernel(CUfunction function, CUkernel kernel, uint32_t* number) noexcept;

}  // namespace iket::inject
