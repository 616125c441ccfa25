// A shape plan as text.
#pragma once

#include <string>

#include "headway/graph.h"
#include "runtime/exec/shape_plan.h"

namespace headway {

/// A paragraph a node, in order; then the memory.
std::string explain_plan(const Graph& graph, const ShapePlan& plan, int workers);

}  // namespace headway
