// Finds the core of attention around a Softmax and puts an Attention node in its place.
//
//   Q ──[·s]──┐
//             MatMul ──[·s][softcap][masks][fills]── Softmax ──[guard]── MatMul ──[Reshape]──[Transpose]── out
//   K ──[·s]──┘   └─ or Einsum                          │                  │
//                                                       └── weights ?      V
//
// One pattern with optional parts; see scores.h, operand.h and mask.h for them. Decides whether all of it is there.
#pragma once

#include "headway/fusion.h"
#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"
#include "ops/fusion/attention/scores.h"

namespace headway::fusion {

/// Fuses around node `softmax`; fills in the group and gives the number of the new node, or −1 with the reason in
/// `failure`, leaving the draft's outputs as they were.
int fuse_core(int softmax, Draft* draft, Facts* facts, FusedGroup* group, Failure* failure);

/// The same for an onnx.Attention node of f32 without a cache: transposes around it become strides, and repeated heads
/// are read once. −1 when it is to stay, which is no fault: it runs on the same attention.
int fuse_onnx_attention(int node, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
