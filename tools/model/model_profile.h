// Where the time of a model goes, by operator and by kind of work; and how much of it is attention's.
#pragma once

#include <map>
#include <string>

#include "headway/graph.h"
#include "headway/profiler.h"

namespace headway::tools {

/// The operator of each node by the name that its row of a profile has. Two nodes may share a name; they share an
/// operator if anything.
std::map<std::string, std::string> operators_by_row(const Graph& graph);

/// One line per operator, longest first: how many nodes, time per run, share. Then attention's share, and the finer
/// zones.
std::string model_profile_text(const Graph& graph, const Profiler& profiler, int runs);

}  // namespace headway::tools
