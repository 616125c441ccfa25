// Outputs of a graph that a caller may bind over an input: what makes that safe is decided here, a shape at a time.
// Knows no operator.
#pragma once

#include <span>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

struct Step;

/// By output of the graph, the input of the graph that it may lie over. `written`: a node writes the output where the
/// caller wants it.
std::vector<ExtendedInput> extended_inputs(const Graph& graph, std::span<const Step> steps,
                                           const std::vector<bool>& written);

/// Whether the caller of a run has bound `output` over that input.
bool is_bound_in_place(const ExtendedInput& extended, std::span<const ConstTensorView> inputs,
                       const ConstTensorView& output);

}  // namespace headway
