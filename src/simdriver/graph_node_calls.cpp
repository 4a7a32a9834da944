// Nodes of graphs: added, asked, changed; in a graph and in an executable one.
//
// Every kind of node is an operation made from its parameters; adding one, changing one and
// changing one of an executable graph differ only in where the operation goes.
#include <cstring>

#include "simdriver/call.h"
#include "simdriver/copy.h"
#include "simdriver/event.h"
#include "simdriver/graph.h"
#include "simdriver/graph_nodes.h"
#include "simdriver/launch.h"

namespace iket::simdriver {
namespace {

// --- operations from parameters ------------------------------------------------------------------

CUresult MakeKernel(Context& context, CUfunction function, const LaunchShape& shape, void** params,
                    void** extra, OperationPtr* made) {
  std::shared_ptr<const KernelOperation> kernel;
  const CUresult result = KernelOperation::Make(context, function, shape, params, extra, &kernel);
  *made = std::move(kernel);
  return result;
}

// Of all versions of the parameters.
template <typename Params>
CUresult MakeKernelFrom(Context& context, const Params& params, OperationPtr* made) {
  CUfunction function = params.func;
  if constexpr (requires { params.kern; }) {
    if (function == nullptr) function = reinterpret_cast<CUfunction>(params.kern);
  }
  return MakeKernel(context, function,
                    {.grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                     .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
                     .dynamic_shared = params.sharedMemBytes},
                    params.kernelParams, params.extra, made);
}

CUresult MakeCopy(const CUDA_MEMCPY3D& params, OperationPtr* made) {
  CopyShape shape;
  const CUresult result = ShapeOfCopy(params, &shape);
  if (result == CUDA_SUCCESS) *made = std::make_shared<CopyOperation>(shape, params);
  return result;
}

CUresult MakeMemset(const CUDA_MEMSET_NODE_PARAMS& params, OperationPtr* made) {
  const CUresult result = CheckMemset(params);
  if (result == CUDA_SUCCESS) *made = std::make_shared<MemsetOperation>(params);
  return result;
}

CUresult MakeHost(const CUDA_HOST_NODE_PARAMS& params, OperationPtr* made) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *made = std::make_shared<HostOperation>(params);
  return CUDA_SUCCESS;
}

CUresult MakeChild(CUgraph handle, OperationPtr* made) {
  const auto graph = Graphs::Get().Find(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Graph> clone = graph->Clone();
  std::vector<OperationPtr> steps;
  for (const GraphNode* node : clone->InOrder()) steps.push_back(node->operation);
  if (steps.size() != clone->nodes().size()) return CUDA_ERROR_INVALID_VALUE;
  *made = std::make_shared<GraphOperation>(std::move(steps), std::move(clone));
  return CUDA_SUCCESS;
}

template <typename Node>
CUresult MakeEvent(CUevent handle, OperationPtr* made) {
  auto event = Events::Get().Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *made = std::make_shared<Node>(std::move(event));
  return CUDA_SUCCESS;
}

CUresult MakeAny(Context& context, const CUgraphNodeParams& params, OperationPtr* made) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return MakeKernelFrom(context, params.kernel, made);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return MakeCopy(params.memcpy.copyParams, made);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return MakeMemset({.dst = params.memset.dst,
                         .pitch = params.memset.pitch,
                         .value = params.memset.value,
                         .elementSize = params.memset.elementSize,
                         .width = params.memset.width,
                         .height = params.memset.height},
                        made);
    case CU_GRAPH_NODE_TYPE_HOST:
      return MakeHost({params.host.fn, params.host.userData}, made);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return MakeChild(params.graph.graph, made);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *made = std::make_shared<EmptyOperation>();
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return MakeEvent<EventRecordNode>(params.eventRecord.event, made);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return MakeEvent<EventWaitNode>(params.eventWait.event, made);
    default:
      return static_cast<CUresult>(NotSupported("a graph node of this type"));
  }
}

// --- where an operation goes ---------------------------------------------------------------------

// Adds the node whose operation `make(context, &operation)` makes.
template <typename Make>
CUresult Add(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
             const Make& make) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto graph = Graphs::Get().Find(handle);
    std::vector<GraphNode*> before;
    if (out == nullptr || graph == nullptr || !FindNodes(*graph, dependencies, count, &before)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    OperationPtr operation;
    const CUresult result = make(context, &operation);
    if (result != CUDA_SUCCESS) return result;
    *out = Nodes::HandleOf(&graph->Add(std::move(operation), before));
    return CUDA_SUCCESS;
  });
}

// Replaces the operation of a node by another of its kind.
template <typename Make>
CUresult Change(CUgraphNode handle, const Make& make) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto node = Nodes::Get().Find(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    OperationPtr operation;
    const CUresult result = make(context, &operation);
    if (result != CUDA_SUCCESS) return result;
    if (operation->type() != node->type) return CUDA_ERROR_INVALID_VALUE;
    node->operation = std::move(operation);
    return CUDA_SUCCESS;
  });
}

// The same in an executable graph alone.
template <typename Make>
CUresult ChangeExec(CUgraphExec exec_handle, CUgraphNode handle, const Make& make) noexcept {
  return ContextCall([&](Context& context) -> CUresult {
    const auto exec = GraphExecs::Get().Find(exec_handle);
    const auto node = Nodes::Get().Find(handle);
    if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    OperationPtr operation;
    const CUresult result = make(context, &operation);
    if (result != CUDA_SUCCESS) return result;
    return exec->Replace(node->number, operation) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

// `body` takes the node's operation as the kind that it must be.
template <typename Kind, typename Body>
CUresult Ask(CUgraphNode handle, const Body& body) noexcept {
  return Call([&]() -> CUresult {
    const auto node = Nodes::Get().Find(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* operation = dynamic_cast<const Kind*>(node->operation.get());
    return operation == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*operation);
  });
}

// Makers that check the program's pointer first.
template <typename Params>
auto KernelMaker(const Params* params) {
  return [params](Context& context, OperationPtr* made) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : MakeKernelFrom(context, *params, made);
  };
}
auto CopyMaker(const CUDA_MEMCPY3D* params) {
  return [params](Context&, OperationPtr* made) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : MakeCopy(*params, made);
  };
}
auto MemsetMaker(const CUDA_MEMSET_NODE_PARAMS* params) {
  return [params](Context&, OperationPtr* made) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : MakeMemset(*params, made);
  };
}
auto HostMaker(const CUDA_HOST_NODE_PARAMS* params) {
  return [params](Context&, OperationPtr* made) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : MakeHost(*params, made);
  };
}
auto ChildMaker(CUgraph graph) {
  return [graph](Context&, OperationPtr* made) { return MakeChild(graph, made); };
}
template <typename Node>
auto EventMaker(CUevent event) {
  return [event](Context&, OperationPtr* made) { return MakeEvent<Node>(event, made); };
}
auto AnyMaker(const CUgraphNodeParams* params) {
  return [params](Context& context, OperationPtr* made) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : MakeAny(context, *params, made);
  };
}

template <typename Params>
CUresult GetKernel(CUgraphNode node, Params* params) {
  return Ask<KernelOperation>(node, [&](const KernelOperation& kernel) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const LaunchShape& shape = kernel.shape();
    *params = {};
    params->func = kernel.handle();
    params->gridDimX = shape.grid.x;
    params->gridDimY = shape.grid.y;
    params->gridDimZ = shape.grid.z;
    params->blockDimX = shape.block.x;
    params->blockDimY = shape.block.y;
    params->blockDimZ = shape.block.z;
    params->sharedMemBytes = shape.dynamic_shared;
    params->kernelParams = kernel.arguments();
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace iket::simdriver

using namespace iket::simdriver;  // NOLINT: C functions of the global namespace

extern "C" {

// --- adding --------------------------------------------------------------------------------------

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return Add(node, graph, before, count, KernelMaker(params));
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return Add(node, graph, before, count, KernelMaker(params));
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return Add(node, graph, before, count, CopyMaker(params));
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return Add(node, graph, before, count, MemsetMaker(params));
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                            size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return Add(node, graph, before, count, HostMaker(params));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                  size_t count, CUgraph child) {
  return Add(node, graph, before, count, ChildMaker(child));
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                             size_t count) {
  return Add(node, graph, before, count, [](Context&, OperationPtr* made) {
    *made = std::make_shared<EmptyOperation>();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                   size_t count, CUevent event) {
  return Add(node, graph, before, count, EventMaker<EventRecordNode>(event));
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                 size_t count, CUevent event) {
  return Add(node, graph, before, count, EventMaker<EventWaitNode>(event));
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUgraphNodeParams* params) {
  return Add(node, graph, before, count, AnyMaker(params));
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return Add(node, graph, before, count, AnyMaker(params));
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  return Call([&] {
    const auto node = Nodes::Get().Find(handle);
    const auto graph = node == nullptr ? nullptr : node->graph.lock();
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    graph->Remove(*node);
    return CUDA_SUCCESS;
  });
}

// --- asking --------------------------------------------------------------------------------------

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return Ask<Operation>(handle, [&](const Operation& operation) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = operation.type();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return GetKernel(node, params);
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  return GetKernel(node, params);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return Ask<CopyOperation>(node, [&](const CopyOperation& copy) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = copy.asked();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return Ask<MemsetOperation>(node, [&](const MemsetOperation& set) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = set.params();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return Ask<HostOperation>(node, [&](const HostOperation& host) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = host.params();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return Ask<GraphOperation>(node, [&](const GraphOperation& child) {
    if (graph == nullptr || child.graph() == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = Graphs::Get().Add(child.graph());
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return Ask<EventRecordNode>(node, [&](const EventRecordNode& record) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = Events::HandleOf(record.event().get());
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return Ask<EventWaitNode>(node, [&](const EventWaitNode& wait) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = Events::HandleOf(wait.event().get());
    return CUDA_SUCCESS;
  });
}

// --- changing a graph ----------------------------------------------------------------------------

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return Change(node, KernelMaker(params));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return Change(node, KernelMaker(params));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return Change(node, CopyMaker(params));
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return Change(node, MemsetMaker(params));
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return Change(node, HostMaker(params));
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return Change(node, EventMaker<EventRecordNode>(event));
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return Change(node, EventMaker<EventWaitNode>(event));
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return Change(node, AnyMaker(params));
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* value) {
  return Ask<KernelOperation>(node, [&](const KernelOperation& kernel) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = {};
    const LaunchShape& shape = kernel.shape();
    if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      value->cooperative = shape.cooperative ? 1 : 0;
    } else if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      value->clusterDim.x = shape.cluster.x;
      value->clusterDim.y = shape.cluster.y;
      value->clusterDim.z = shape.cluster.z;
    } else if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY &&
               attribute != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  return Call([&] {
    const auto node = Nodes::Get().Find(handle);
    if (node == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* kernel = dynamic_cast<const KernelOperation*>(node->operation.get());
    if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape = kernel->shape();
    CUlaunchAttribute one{};
    one.id = attribute;
    one.value = *value;
    if (const CUresult bad = ReadAttributes(&one, 1, &shape); bad != CUDA_SUCCESS) return bad;
    std::shared_ptr<const KernelOperation> made;
    const CUresult result = kernel->WithShape(shape, &made);
    if (result == CUDA_SUCCESS) node->operation = std::move(made);
    return result;
  });
}

// --- changing an executable graph ----------------------------------------------------------------

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return ChangeExec(exec, node, KernelMaker(params));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return ChangeExec(exec, node, KernelMaker(params));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  return ChangeExec(exec, node, CopyMaker(params));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return ChangeExec(exec, node, MemsetMaker(params));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return ChangeExec(exec, node, HostMaker(params));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return ChangeExec(exec, node, ChildMaker(child));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return ChangeExec(exec, node, EventMaker<EventRecordNode>(event));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return ChangeExec(exec, node, EventMaker<EventWaitNode>(event));
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return ChangeExec(exec, node, AnyMaker(params));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned enabled) {
  return Call([&] {
    const auto exec = GraphExecs::Get().Find(exec_handle);
    const auto node = Nodes::Get().Find(handle);
    if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return exec->SetEnabled(node->number, enabled != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned* enabled) {
  return Call([&] {
    const auto exec = GraphExecs::Get().Find(exec_handle);
    const auto node = Nodes::Get().Find(handle);
    if (exec == nullptr || node == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = exec->IsEnabled(node->number);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *enabled = *found ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
