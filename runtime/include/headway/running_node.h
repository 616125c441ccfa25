// Which node a session runs on this thread, for tools that watch operators at work. Knows no operator.
#pragma once

#include "headway/export.h"
#include "headway/graph.h"

namespace headway {

/// The node of the innermost Session::run() on this thread that is being run; null outside of one.
HEADWAY_API const Node* running_node();

}  // namespace headway
