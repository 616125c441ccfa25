// The Attention node from its parts: reads repeated heads once, takes a Transpose below into its axes, and gives the
// probabilities where somebody reads them.
#pragma once

#include <string>
#include <vector>

#include "headway/fusion.h"
#include "ops/fusion/attention/mask.h"
#include "ops/fusion/attention/operand.h"

namespace headway::fusion {

struct AttentionParts {
  Operand query, key, value;           ///< peeled
  ValueId out = kNoValue;              ///< what the node is to give
  std::vector<std::int64_t> out_axes;  ///< axis i of [B, H, S, D] is axis out_axes[i] of it
  ValueId weights = kNoValue;          ///< the probabilities, if they are wanted
  MaskInput mask;
  double scale = 1;
  Attributes attributes;  ///< besides scale, axes and polarity
  std::string name;
  int before = 0;
};

/// Adds the node, lets everybody read it, and gives its number.
int make_attention(AttentionParts parts, Draft* draft, Facts* facts, FusedGroup* group);

}  // namespace headway::fusion
