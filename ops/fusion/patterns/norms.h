// Layer normalisation and RMS normalisation as exporters take them apart:
//
//   RMS    x · 1/√(mean(x²) + ε) · w                          with 1/√ as Div, Reciprocal or Pow, or x / √
//   layer  (x − mean(x)) / √(mean((x − mean(x))²) + ε) · w, perhaps + b
//
// means over the last axis, w and b of its length; f32, f16 or bf16, with Casts to f32 and back. Decides whether it is
// one.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Fuses a norm whose last node is `node`; true when it did.
bool fuse_norm(int node, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
