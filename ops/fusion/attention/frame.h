// The whole frame around an Attention node, fused to MultiHeadAttention with its four weights.
//
//   x ── projection ── Reshape(B, S, H, D) ──┐
//   x ── projection ── Reshape(B, S, H, D) ── Attention ── Reshape(B, S, E) ── projection ── out
//   x ── projection ── Reshape(B, S, H, D) ──┘
//
// or with whatever else only moves axes between a projection and the heads (head_trace.h), and with tokens [S, B, E] as
// torch.nn.MultiheadAttention has them. Decides whether all of it is there: with rotary embeddings, a past or another
// order it is not, and the core stays.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Fuses around node `attention`, which make_attention() made; changes the group's kind when it does.
bool fuse_frame(int attention, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
