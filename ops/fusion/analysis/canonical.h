// One form for what exporters write in many: constants and static shape arithmetic folded, nodes that change nothing
// dropped, equal nodes made one. Decides nothing about attention.
#pragma once

#include "headway/operator.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

void canonicalise(const Registry& registry, Draft* draft, Facts* facts);

}  // namespace headway::fusion
