// What a mask whose elements are known when a plan is made really says: nothing at all, the causal rule, or something
// else. Decides by value, so that it does not matter how a file computed it.
#pragma once

#include "headway/attention.h"

namespace headway {

/// Replaces a mask that hides nothing by no mask, and one that is exactly a causal limit at the top left or bottom
/// right by Causal; leaves the spec alone when the mask says anything else. An additive mask counts as hiding where it
/// is −inf, or so low that exp gives 0 next to a visible key. Needs query_len, key_len and polarity of the spec.
void use_known_mask(const ConstTensorView& mask, AttentionSpec* spec);

}  // namespace headway
