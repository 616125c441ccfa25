// Attention over [B·H, S, D] whose tokens had batch and heads side by side, as torch.nn.MultiheadAttention writes it
// when it gives its weights:
//
//   tokens [S, B, H·D] ── Reshape [S, B·H, D] ── Transpose ── core ── Transpose ── Reshape
//
// The same elements are heads [S, B, H, D], so that batch and heads come apart without a copy. Decides whether they do.
#pragma once

#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"
#include "ops/fusion/attention/attention_node.h"
#include "ops/fusion/attention/scores.h"

namespace headway::fusion {

/// Turns parts of rank 3, peeled, and their masks into ones of rank 4. False, with nothing changed but constants and
/// nodes that nobody reads, where one of them does not come apart.
bool split_joined_heads(Draft* draft, Facts* facts, Scores* scores, AttentionParts* parts);

}  // namespace headway::fusion
