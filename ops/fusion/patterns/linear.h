// A product with constant weights, its bias and its activation, fused to Linear:
//
//   x ── MatMul(W) ── [Add b] ── [Relu | Gelu | Tanh | Sigmoid]
//   x ── Gemm(W, b) ── [Reshape] ── Relu | Gelu | Tanh | Sigmoid
//
// Decides whether nobody else needs what lies between.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Fuses what follows a MatMul or Gemm, node `node`; true when it did.
bool fuse_linear(int node, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
