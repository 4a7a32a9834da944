#include "patch/reach.h"

#include <map>

#include "base/bytes.h"
#include "patch/calls.h"

namespace iket::patch {
namespace {

using sass::Instruction;

constexpr uint32_t kNobody = ~0u;
class CallFinder {
 public:
  CallFinder(const cubin::Image& image, std::span<const CodeSection> sections)
      : image_(image), sections_(sections), pointers_(static_cast<uint32_t>(sections.size())) {
    graph_.callees.resize(sections.size() + 2);
    for (uint32_t i = 0; i < sections.size(); ++i) {
      node_of_.emplace(sections[i].section, i);
      if (!sections[i].is_kernel()) graph_.Add(Everything(), i);
    }
    is_pointee_.resize(sections.size());
    has_target_.resize(sections.size());
  }

  CallGraph Run() {
    for (const cubin::Section& section : image_.sections()) {
      if (section.type == cubin::kSectionRela || section.type == cubin::kSectionRel) {
        Read(section);
      }
    }
    for (uint32_t i = 0; i < sections_.size(); ++i) FindOtherCalls(i);
    return std::move(graph_);
  }

 private:
  uint32_t Everything() const { return pointers_ + 1; }

  // The node of the function or section that a symbol stands for. A kernel is not called, but a
  // function that lies beside it might be.
  uint32_t Target(uint32_t index) const {
    if (index >= image_.symbols().size()) return kNobody;
    const cubin::Symbol& symbol = image_.symbols()[index];
    const auto found = symbol.has_section ? node_of_.find(symbol.section) : node_of_.end();
    if (found == node_of_.end()) return kNobody;
    const bool is_function =
        symbol.type == cubin::kSymbolFunction && (symbol.other & cubin::kOtherCudaEntry) == 0;
    return is_function || !sections_[found->second].is_kernel() ? found->second : kNobody;
  }

  void Read(const cubin::Section& relocations) {
    const auto user = node_of_.find(relocations.info);
    const bool is_code = user != node_of_.end();
    // Frames of debuggers and line tables name functions and call none.
    if (!is_code && relocations.info < image_.sections().size() &&
        (image_.sections()[relocations.info].flags & cubin::kFlagAlloc) == 0) {
      return;
    }
    for (const Relocation& relocation : Relocations(relocations)) {
      const uint32_t target = Target(relocation.symbol);
      const uint64_t index = relocation.offset / sass::kInstructionBytes;
      bool is_call = false;
      if (is_code) {
        const CodeSection& caller = sections_[user->second];
        is_call = index < caller.code.size() && IsCall(caller.code[index]) &&
                  !CallsPointer(caller.code[index]);
        if (is_call) {
          auto& known = has_target_[user->second];
          known.resize(caller.code.size());
          known[index] = true;
        }
        if (target != kNobody && target != user->second) graph_.Add(user->second, target);
      }
      // A return address in the caller itself is no function's.
      const bool is_own = is_code && target == user->second;
      if (target == kNobody || is_call || is_own || is_pointee_[target]) continue;
      is_pointee_[target] = true;
      graph_.Add(pointers_, target);
    }
  }

  void FindOtherCalls(uint32_t node) {
    const std::vector<Instruction>& code = sections_[node].code;
    bool calls_pointer = false, calls_unknown = false;
    for (size_t i = 0; i < code.size(); ++i) {
      if (!MayCallOrJump(code[i])) continue;
      calls_pointer |= CallsPointer(code[i]);
      calls_unknown |= NeedsRelocation(code[i], i, code.size(), sections_[node].generation) &&
                       !(i < has_target_[node].size() && has_target_[node][i]);
    }
    if (calls_pointer) graph_.Add(node, pointers_);
    if (calls_unknown) graph_.Add(node, Everything());
  }

  const cubin::Image& image_;
  const std::span<const CodeSection> sections_;
  const uint32_t pointers_;               // the node that stands for what a pointer may point at
  std::map<uint32_t, uint32_t> node_of_;  // by section of the image
  CallGraph graph_;
  std::vector<bool> is_pointee_;               // by node
  std::vector<std::vector<bool>> has_target_;  // by node and instruction: a relocation says it
};

// For each node, one of `sources` from which it can be reached, or kNobody. A source reaches
// itself.
std::vector<uint32_t> ReachedFrom(const std::vector<std::vector<uint32_t>>& edges,
                                  const std::vector<uint32_t>& sources) {
  std::vector<uint32_t> source_of(edges.size(), kNobody);
  std::vector<uint32_t> pending;
  for (uint32_t source : sources) {
    if (source_of[source] != kNobody) continue;
    source_of[source] = source;
    pending.push_back(source);
    while (!pending.empty()) {
      const uint32_t node = pending.back();
      pending.pop_back();
      for (uint32_t next : edges[node]) {
        if (source_of[next] != kNobody) continue;
        source_of[next] = source;
        pending.push_back(next);
      }
    }
  }
  return source_of;
}

class Decider {
 public:
  Decider(std::span<const CallNode> nodes, const CallGraph& graph)
      : nodes_(nodes), callees_(graph.callees), callers_(graph.callees.size()) {
    for (uint32_t caller = 0; caller < callees_.size(); ++caller) {
      for (uint32_t callee : callees_[caller]) callers_[callee].push_back(caller);
    }
    decisions_.resize(nodes.size());
  }

  std::vector<Decision> Run() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) decisions_[i].refused = !nodes_[i].can_be_patched;
    FindUnwanted();
    Want();
    for (int round = 0; Refuse(); ++round) {
      if (round == kMaxRounds) RefuseAll();
      Want();
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i) decisions_[i].patch = wanted_[i];
    return std::move(decisions_);
  }

 private:
  template <typename Holds>
  std::vector<uint32_t> Where(const Holds& holds) const {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (holds(i)) found.push_back(i);
    }
    return found;
  }
  bool Refused(uint32_t i) const { return decisions_[i].refused; }

  // What kernels that are left out reach, and no other kernel does.
  void FindUnwanted() {
    const auto reached = [this](bool left_out) {
      return ReachedFrom(callees_, Where([&](uint32_t i) {
                           return nodes_[i].is_kernel && nodes_[i].left_out == left_out;
                         }));
    };
    const auto by_wanted = reached(false), by_left_out = reached(true);
    unwanted_.resize(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      unwanted_[i] = by_left_out[i] != kNobody && by_wanted[i] == kNobody;
    }
  }

  // What has to be patched for the marks that are not refused: functions with marks, the kernels
  // that reach one, the functions in which those end, the kernels that reach those, and so on.
  void Want() {
    wanted_.assign(nodes_.size(), false);
    Passed up(callees_.size()), down(callees_.size());  // towards callers, towards callees
    std::vector<uint32_t> pending_up, pending_down;
    const auto want = [&](uint32_t i) {
      wanted_[i] = true;
      Pass(i, up, pending_up);
      if (nodes_[i].is_kernel) Pass(i, down, pending_down);
    };
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].has_marks && !unwanted_[i] && !Refused(i)) want(i);
    }
    while (!pending_up.empty() || !pending_down.empty()) {
      const bool goes_up = !pending_up.empty();
      std::vector<uint32_t>& pending = goes_up ? pending_up : pending_down;
      const uint32_t at = pending.back();
      pending.pop_back();
      for (uint32_t next : goes_up ? callers_[at] : callees_[at]) {
        Pass(next, goes_up ? up : down, pending);
      }
      if (at >= nodes_.size() || wanted_[at] || Refused(at)) continue;
      if (goes_up ? nodes_[at].is_kernel : !nodes_[at].is_kernel && nodes_[at].ends_warps) want(at);
    }
  }
  using Passed = std::vector<bool>;
  static void Pass(uint32_t node, Passed& passed, std::vector<uint32_t>& pending) {
    if (passed[node]) return;
    passed[node] = true;
    pending.push_back(node);
  }

  // Refuses what is wanted and must not be. True if there was any.
  bool Refuse() {
    bool any = false;
    const auto refuse = [&](uint32_t i, Cause cause, uint32_t other) {
      if (Refused(i)) return;
      decisions_[i] = {.patch = false, .refused = true, .cause = cause, .other = other};
      any = true;
    };
    // Other kernels without a trampoline reach nothing that is wanted.
    const auto bare = ReachedFrom(
        callees_, Where([this](uint32_t i) { return nodes_[i].is_kernel && Refused(i); }));
    const auto breaks = ReachedFrom(callers_, Where([this](uint32_t i) {
                                      return !nodes_[i].is_kernel && nodes_[i].breaks_ring_state;
                                    }));
    const auto loses =
        ReachedFrom(callers_, Where([this](uint32_t i) {
                      return !nodes_[i].is_kernel && nodes_[i].ends_warps && Refused(i);
                    }));
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!wanted_[i]) continue;
      if (bare[i] != kNobody) refuse(i, Cause::kKernel, bare[i]);
      if (!nodes_[i].is_kernel) continue;
      if (breaks[i] != kNobody) refuse(i, Cause::kBreaksState, breaks[i]);
      if (loses[i] != kNobody) refuse(i, Cause::kUnrecordedEnds, loses[i]);
    }
    return any;
  }

  void RefuseAll() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (wanted_[i]) decisions_[i] = {.refused = true, .cause = Cause::kEntangled};
    }
  }

  const std::span<const CallNode> nodes_;
  const std::vector<std::vector<uint32_t>>& callees_;
  std::vector<std::vector<uint32_t>> callers_;
  std::vector<Decision> decisions_;
  std::vector<bool> unwanted_;
  std::vector<bool> wanted_;
};

}  // namespace

// REL and RELA begin alike: an offset, and the symbol in the upper half of the next word.
std::vector<Relocation> Relocations(const cubin::Section& section) {
  const uint64_t size = section.type == cubin::kSectionRela ? 24 : 16;
  const UntrustedBytes bytes(section.data);
  std::vector<Relocation> all;
  all.reserve(bytes.size() / size);
  for (uint64_t at = 0; at + size <= bytes.size(); at += size) {
    all.push_back({*bytes.Read<uint64_t>(at), *bytes.Read<uint32_t>(at + 12)});
  }
  return all;
}

CallGraph FindCalls(const cubin::Image& image, std::span<const CodeSection> sections) {
  return CallFinder(image, sections).Run();
}

std::vector<Decision> Decide(std::span<const CallNode> nodes, const CallGraph& graph) {
  return Decider(nodes, graph).Run();
}

}  // namespace iket::patch
