// How many pairs the mathematics needs, from the spec alone. Knows no implementation and no user mask.
#include <algorithm>
#include <limits>

#include "headway/attention.h"
#include "ops/attention/spec.h"
#include "ops/attention/visibility.h"

namespace headway {
namespace {

// Wide enough for any sum over 2^63 rows of less than 2^64 keys.
__extension__ typedef __int128 Wide;

/// The sum of clamp(i + shift, 0, limit) over i in [0, rows).
Wide sum_of_clamped(std::int64_t rows, std::int64_t shift, std::int64_t limit) {
  const Wide first = std::max<Wide>(0, -Wide{shift});                      // the first that is not below 0
  const Wide last = std::clamp<Wide>(Wide{limit} - shift, 0, Wide{rows});  // the first that has reached the limit
  Wide sum = Wide{limit} * (rows - last);
  if (last > first) sum += (last - first) * (first + last - 1 + 2 * Wide{shift}) / 2;
  return sum;
}

std::int64_t saturated_product(Wide a, std::int64_t b) {
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(b != 0 && a > kMax / b ? kMax : a * b);
}

}  // namespace

std::int64_t nominal_attention_flops(const AttentionSpec& spec) {
  AttentionSpec known = complete_spec(spec);
  known.key_lengths = false;
  // Offsets come with the run; a cache that ends with the queries is what they are nearly always for.
  if (known.causal == Causal::kOffset) known.causal = Causal::kBottomRight;
  const Visibility visibility(known, {}, 0);
  const Wide before_tail = sum_of_clamped(known.query_len, visibility.last() + 1, visibility.limit()) -
                           sum_of_clamped(known.query_len, visibility.first(), visibility.limit());
  Wide pairs = Wide{known.query_len} * known.always_visible_keys + std::max<Wide>(0, before_tail);
  for (const std::int64_t factor : {known.head_dim + *known.value_head_dim, known.num_heads, known.batch}) {
    pairs = saturated_product(pairs, factor);
  }
  return saturated_product(pairs, 2);
}

}  // namespace headway
