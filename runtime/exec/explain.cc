// What a plan decided, for people.
#include "runtime/exec/explain.h"

#include <string_view>

#include "runtime/base/quoted.h"
#include "runtime/base/text_stream.h"

namespace headway {
namespace {

void explain_outputs(const Node& node, const ShapePlan& plan, std::ostream& out) {
  const char* separator = " -> ";
  for (ValueId value : node.outputs) {
    const TensorInfo& info = plan.info(value);
    out << separator;
    separator = ", ";
    if (info.present) {
      out << type_name(info.type) << ' ' << info.dims;
    } else {
      out << "absent";
    }
  }
}

/// The operator's own lines, indented below its node.
void indent(std::string_view text, std::ostream& out) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out << "    " << text.substr(0, end) << '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// Why a node does not run; empty when it does.
const char* reason(NodeRole role) {
  switch (role) {
    case NodeRole::kFolded:
      return "folded, its values are known before the run";
    case NodeRole::kView:
      return "a view, nothing is copied";
    case NodeRole::kUnused:
      return "left out, nothing needs it";
    case NodeRole::kOff:
      return "left out, in a branch that is not taken";
    case NodeRole::kRuns:
      break;
  }
  return "";
}

}  // namespace

std::string explain_plan(const Graph& graph, const ShapePlan& plan, int workers) {
  TextStream out;
  std::size_t step = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    out << node.op << ' ' << Quoted{node.name};
    explain_outputs(node, plan, out);
    if (plan.role(i) == NodeRole::kView) ++step;
    if (plan.role(i) != NodeRole::kRuns) {
      out << ": " << reason(plan.role(i)) << '\n';
      continue;
    }
    const NodePlan& node_plan = *plan.steps()[step++].plan;
    out << ": workspace " << node_plan.workspace_bytes(workers) << " bytes\n";
    indent(node_plan.explain(), out);
  }
  const MemoryPlan& memory = plan.memory();
  out << "memory: arena " << memory.arena_bytes << " bytes for intermediates of " << memory.sum_bytes
      << " bytes, liveness saved " << memory.sum_bytes - memory.arena_bytes << " bytes; workspace "
      << plan.workspace_bytes(workers) << " bytes with " << workers << " workers\n";
  return out.str();
}

}  // namespace headway
