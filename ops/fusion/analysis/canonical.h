// One form for what exporters write in many: constants and static shape arithmetic folded, nodes that change nothing
// dropped, equal nodes made one. Decides nothing about attention.
#pragma once

#include "headway/operator.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Every node's rule is asked before anything looks at its inputs; throws what it throws. False when a node in a branch
/// is wrong: whether that counts is known when a shape is.
bool canonicalise(const Registry& registry, Draft* draft, Facts* facts);

}  // namespace headway::fusion
