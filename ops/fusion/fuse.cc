// The order of the passes, and what is said of each anchor: small patterns before attention, whose operands they may
// be; products last, since attention takes in those around it.
#include "headway/fusion.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ops/fusion/analysis/canonical.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"
#include "ops/fusion/attention/attention_core.h"
#include "ops/fusion/attention/frame.h"
#include "ops/fusion/patterns/activations.h"
#include "ops/fusion/patterns/linear.h"
#include "ops/fusion/patterns/norms.h"
#include "runtime/base/bad_alloc.h"

namespace headway {
namespace fusion {
namespace {

class Passes {
 public:
  Passes(const Graph& graph, const Registry& registry, FusionReport* report)
      : registry_(registry), graph_(graph), draft_(graph), facts_(registry, draft_), report_(*report) {}

  Graph run() {
    if (!canonicalise(registry_, &draft_, &facts_)) return graph_;
    each_node([&](int node) { norms_and_activations(node); });
    each_node([&](int node) { attention(node); });
    each_node([&](int node) { products(node); });
    Graph fused = draft_.build();
    fused.set_source(std::make_shared<const Graph>(graph_));
    return fused;
  }

 private:
  /// Calls visit for every node that an output needs, front to back; nodes made meanwhile are not visited.
  template <class Visit>
  void each_node(Visit visit) {
    draft_.sweep();
    const std::vector<bool> needed = draft_.needed_nodes();
    for (int i = 0; i < static_cast<int>(needed.size()); ++i) {
      if (needed[static_cast<std::size_t>(i)] && draft_.node(i).guards.empty()) visit(i);
    }
  }

  void norms_and_activations(int node) {
    FusedGroup group;
    const bool norms = registry_.find("LayerNormalization") != nullptr && registry_.find("RMSNormalization") != nullptr;
    if (norms && fuse_norm(node, &draft_, &facts_, &group)) {
      report_.fused.push_back(group);
    } else if (registry_.find("Gelu") != nullptr && fuse_gelu(node, &draft_, &facts_, &group)) {
      report_.fused.push_back(group);
    } else if (registry_.find("Swish") != nullptr && fuse_swish(node, &draft_, &facts_, &group)) {
      report_.fused.push_back(group);
    }
  }

  void attention(int node) {
    const std::string op = draft_.node(node).op;
    const std::string name = draft_.node(node).name;
    FusedGroup group;
    int made = -1;
    if (op == "Softmax") {
      Failure failure;
      made = fuse_core(node, &draft_, &facts_, &group, &failure);
      if (made < 0) {
        report_.missed.push_back({name, op, failure.edge()});
        return;
      }
    } else if (op == "onnx.Attention") {
      group = {.node = name, .kind = "Attention", .mask = ""};
      made = fuse_onnx_attention(node, &draft_, &facts_, &group);
    } else if (op != "com.microsoft.MultiHeadAttention" && op != "com.microsoft.Attention" &&
               op != "com.microsoft.GroupQueryAttention") {
      return;
    }
    if (made < 0) {
      report_.native.push_back({name, op});
      return;
    }
    fuse_frame(made, &draft_, &facts_, &group);
    report_.fused.push_back(group);
  }

  void products(int node) {
    const std::string& op = draft_.node(node).op;
    FusedGroup group;
    if ((op == "MatMul" || op == "Gemm") && registry_.find("Linear") != nullptr &&
        fuse_linear(node, &draft_, &facts_, &group)) {
      report_.fused.push_back(group);
    }
  }

  const Registry& registry_;
  const Graph& graph_;
  Draft draft_;
  Facts facts_;
  FusionReport& report_;
};

}  // namespace
}  // namespace fusion

Graph fuse(const Graph& graph, const Registry& registry, FusionReport* report) try {
  // What a session will refuse is for the session to name.
  const auto is_known = [&](const Node& node) { return registry.find(node.op) != nullptr; };
  if (!std::all_of(graph.nodes().begin(), graph.nodes().end(), is_known)) return graph;
  FusionReport unread;
  return fusion::Passes(graph, registry, report != nullptr ? report : &unread).run();
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
