// graphs.h: which kernels executable graphs launch, and the log of their launches.
//
// Whatever a graph was made of (captured work, nodes added one by one, clones, children), its nodes
// are asked of the driver once, when it is instantiated; from then on the calls that change an
// executable graph are followed. The account has one row for each traced kernel node, and one more
// whenever its kernel or shape changes; new arguments alone cost no row.
//
// Cost: instantiating and updating ask the driver two to five times a node. A launch of a graph
// without traced kernels costs one atomic load where there is no graph that has some, else a lock
// and a look-up. No lock is held across a driver call. What the driver does not answer is written
// down as not stated, and the program goes on.
#pragma once

#include <cuda.h>

#include "inject/launches.h"

namespace iket::inject {

// After the call of that meaning has succeeded. `by_device`: the device may launch it, too.
void GraphInstantiated(CUgraphExec exec, CUgraph graph, bool by_device) noexcept;
// The executable graph does from now on what `graph` does.
void GraphUpdated(CUgraphExec exec, CUgraph graph) noexcept;
void GraphDestroyed(CUgraphExec exec) noexcept;

// One node of it launches this from now on; `function` is null where `kernel` says it.
void GraphKernelChanged(CUgraphExec exec, CUgraphNode node, CUfunction function, CUkernel kernel,
                        const LaunchShape& shape) noexcept;
void GraphChildChanged(CUgraphExec exec, CUgraphNode node, CUgraph child) noexcept;
void GraphNodeEnabled(CUgraphExec exec, CUgraphNode node, bool enabled) noexcept;

// Before a launch of the graph: arms the context and, if it has traced kernels, writes an entry,
// which AfterLaunch completes.
Launching BeforeGraphLaunch(CUgraphExec exec, CUstream stream) noexcept;

}  // namespace iket::inject
