// What was added to the scores, as one mask for the Attention operator: a bool where the file's own numbers allow it,
// else the sum as ordinary nodes, made once and shared by all layers that have the same terms.
#pragma once

#include <optional>
#include <string>

#include "ops/fusion/attention/scores.h"

namespace headway::fusion {

struct MaskInput {
  ValueId value = kNoValue;
  bool true_hides = false;    ///< of a bool mask
  std::string kind = "none";  ///< "none", "bool" or "float", for the report
};

struct MaskPlace {
  int rank;     ///< of the attention
  bool joined;  ///< some of the scores are [B·H, S, S] although the attention is [B, H, S, D]
  int before;   ///< number of the node that new nodes stand before
  const std::string& name;
};

/// Adds the nodes it needs. nullopt, with the reason in `failure`, when a term cannot be a mask.
std::optional<MaskInput> make_mask(const Scores& scores, const MaskPlace& place, Draft* draft, Facts* facts,
                                   Failure* failure);

}  // namespace headway::fusion
