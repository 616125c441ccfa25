// GELU and, in narrow types, SiLU as exporters take them apart:
//
//   exact   ½ · x · (1 + erf(x / √2))
//   tanh    ½ · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
//
//   SiLU    x · sigmoid(x), where one rounding less is worth a pass; in f32 the two kernels are as good
//
// whatever the nesting of the products of GELU. Decides whether it is one.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Fuses a GELU whose last node is `node`; true when it did.
bool fuse_gelu(int node, Draft* draft, Facts* facts, FusedGroup* group);
/// The same for a SiLU of f16 or bf16, which becomes a Swish.
bool fuse_swish(int node, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
