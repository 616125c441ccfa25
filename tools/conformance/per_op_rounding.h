// A graph whose attention and softmax round after every step, as the function bodies do that the backend suite's data
// in f16 and bf16 was made by. Knows neither files nor sessions.
#pragma once

#include "headway/graph.h"

namespace headway::tools {

/// The same graph with per_op_rounding = 1 on every node that knows the attribute. Constants are shared.
Graph with_per_op_rounding(const Graph& graph);

}  // namespace headway::tools
