// How many pairs the mathematics needs, from the spec alone. Knows no implementation and no user mask.
#include "headway/attention.h"
#include "ops/attention/spec.h"
#include "ops/attention/visibility.h"

namespace headway {

std::int64_t nominal_attention_flops(const AttentionSpec& spec) {
  AttentionSpec known = complete_spec(spec);
  known.key_lengths = false;
  // Offsets come with the run; a cache that ends with the queries is what they are nearly always for.
  if (known.causal == Causal::kOffset) known.causal = Causal::kBottomRight;
  const Visibility visibility(known, {}, 0);
  std::int64_t pairs = known.query_len * known.always_visible_keys;
  for (std::int64_t i = 0; i < known.query_len; ++i) {
    const KeyRange row = visibility.row(i);
    if (!row.empty()) pairs += row.end - row.begin;
  }
  return 2 * known.batch * known.num_heads * (known.head_dim + *known.value_head_dim) * pairs;
}

}  // namespace headway
