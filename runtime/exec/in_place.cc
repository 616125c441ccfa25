// An output may lie over an input that the output's own node reads, and no other: another would find there what has
// been written, or read an output of dims that it was not planned for.
#include "runtime/exec/in_place.h"

#include "runtime/base/memory_overlap.h"
#include "runtime/exec/shape_plan.h"

namespace headway {
namespace {

/// By value, how often nodes that run, views and outputs of the graph read it.
std::vector<int> count_readers(const Graph& graph, std::span<const Step> steps) {
  std::vector<int> readers(graph.num_values());
  for (const Step& step : steps) {
    for (const ValueId value : graph.nodes()[step.node].inputs) {
      if (value != kNoValue) ++readers[value];
    }
  }
  for (const Graph::Output& output : graph.outputs()) ++readers[output.value];
  return readers;
}

int input_of(const Graph& graph, ValueId value) {
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i].value == value) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

std::vector<ExtendedInput> extended_inputs(const Graph& graph, std::span<const Step> steps,
                                           const std::vector<bool>& written) {
  std::vector<ExtendedInput> by_value(graph.num_values());
  std::vector<int> readers;
  for (const Step& step : steps) {
    const Node& node = graph.nodes()[step.node];
    for (std::size_t k = 0; step.plan != nullptr && k < node.outputs.size(); ++k) {
      ExtendedInput extended = step.plan->extended_input(k);
      if (extended.input < 0) continue;
      if (readers.empty()) readers = count_readers(graph, steps);
      const ValueId from = node.inputs[static_cast<std::size_t>(extended.input)];
      extended.input = from == kNoValue || readers[from] != 1 ? -1 : input_of(graph, from);
      // The graph's output is the one reader.
      if (extended.input >= 0 && readers[node.outputs[k]] == 1) by_value[node.outputs[k]] = extended;
    }
  }
  std::vector<ExtendedInput> result(graph.outputs().size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (written[i]) result[i] = by_value[graph.outputs()[i].value];
  }
  return result;
}

bool is_bound_in_place(const ExtendedInput& extended, std::span<const ConstTensorView> inputs,
                       const ConstTensorView& output) {
  return extended.input >= 0 && begins_with(output, inputs[static_cast<std::size_t>(extended.input)]);
}

}  // namespace headway
