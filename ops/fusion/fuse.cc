// The order of the passes, and what is said of each anchor: small patterns before attention, whose operands they may
// be; products last, since attention takes in those around it.
#include "headway/fusion.h"

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
      : registry_(registry), draft_(graph), facts_(draft_), report_(*report) {}

  Graph run() {
    canonicalise(registry_, &draft_, &facts_);
    each_node([&](int node) { norms_and_activations(node); });
    each_node([&](int node) { attention(node); });
    each_node([&](int node) { products(node); });
    return draft_.build();
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
      // What stays as it is runs on the same attention.
      group = {.node = name, .kind = "Attention", .mask = "as the node has it"};
      made = fuse_onnx_attention(node, &draft_, &facts_, &group);
    } else if (op == "com.microsoft.MultiHeadAttention" || op == "com.microsoft.Attention") {
      // The same; the projections of the latter are its own.
      const std::int64_t heads = draft_.node(node).attributes.integer("num_heads", 0);
      group = {.node = name, .kind = "Attention", .heads = heads, .kv_heads = heads, .mask = "as the node has it"};
      const auto width = heads > 0 ? facts_.dim(draft_.node(node).outputs[0], 2) : std::nullopt;
      if (width && width->is_number()) group.head_dim = width->factor / heads;
    } else {
      return;
    }
    if (made >= 0) fuse_frame(made, &draft_, &facts_, &group);
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
  Draft draft_;
  Facts facts_;
  FusionReport& report_;
};

}  // namespace
}  // namespace fusion

Graph fuse(const Graph& graph, const Registry& registry, FusionReport* report) try {
  FusionReport unread;
  return fusion::Passes(graph, registry, report != nullptr ? report : &unread).run();
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
