// GELU as exporters take it apart:
//
//   exact   ½ · x · (1 + erf(x / √2))
//   tanh    ½ · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
//
// whatever the nesting of the products. Decides whether it is one.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Fuses a GELU whose last node is `node`; true when it did.
bool fuse_gelu(int node, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
