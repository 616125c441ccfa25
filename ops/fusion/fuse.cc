// The order of the passes, and what is said of each anchor.
#include "headway/fusion.h"

#include <algorithm>

#include "ops/fusion/attention_core.h"
#include "ops/fusion/canonical.h"
#include "ops/fusion/draft.h"
#include "ops/fusion/facts.h"
#include "ops/fusion/frame.h"

namespace headway {

Graph fuse(const Graph& graph, const Registry& registry, FusionReport* report) {
  using namespace fusion;
  FusionReport unread;
  if (report == nullptr) report = &unread;
  Draft draft(graph);
  Facts facts(draft);
  canonicalise(registry, &draft, &facts);
  const std::vector<bool> needed = draft.needed_nodes();
  for (int i = 0; i < static_cast<int>(needed.size()); ++i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    const std::string op = draft.node(i).op;
    const std::string name = draft.node(i).name;
    FusedGroup group;
    if (op == "Softmax") {
      Failure failure;
      if (const int made = fuse_core(i, &draft, &facts, &group, &failure); made >= 0) {
        fuse_frame(made, &draft, &facts, &group);
        report->fused.push_back(group);
      } else {
        report->missed.push_back({name, op, failure.edge()});
      }
    } else if (op == "onnx.Attention") {
      group = {.node = name, .kind = "Attention", .mask = "as the node has it"};
      const int made = fuse_onnx_attention(i, &draft, &facts, &group);
      if (made >= 0) fuse_frame(made, &draft, &facts, &group);
      report->fused.push_back(group);
    }
  }
  return draft.build();
}

}  // namespace headway
