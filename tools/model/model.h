// A model in words: its dims, what it is, what was fused. Knows no inputs.
#pragma once

#include <string>
#include <vector>

#include "headway/fusion.h"
#include "headway/graph.h"
#include "headway/model.h"

namespace headway::tools {

/// "[2, sequence]"
std::string text(const std::vector<SymbolicDim>& dims);
/// "opset 17, pytorch 2.13.0, 232 nodes (118 after fusion), weights 0.4 MB (0.1 MB mapped)"
std::string text(const Model& model);
/// "attention fused in 2 of 2", ", native in 1" where the file has attention as one node
std::string attention_fused(const FusionReport& fusion);

}  // namespace headway::tools
