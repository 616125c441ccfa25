// Empty rows by the reference's reading of the masks. See empty_rows.h.
#include "tools/conformance/empty_rows.h"

#include <cmath>
#include <limits>

#include "ops/reference/reference_attention.h"

namespace headway::tools {
namespace {

bool sees_no_key(const AttentionSpec& spec, const AttentionArgs& args, ReferencePair pair) {
  for (pair.key = 0; pair.key < spec.key_len; ++pair.key) {
    if (reference_bias(spec, args, pair) != -std::numeric_limits<float>::infinity()) return false;
  }
  return true;
}

RowState joined(std::int64_t empty, std::int64_t heads) {
  if (empty == 0) return RowState::kSeesKeys;
  return empty == heads ? RowState::kAllHeadsEmpty : RowState::kSomeHeadsEmpty;
}

}  // namespace

void find_empty_rows(const AttentionSpec& spec, const AttentionArgs& args, bool per_head_output, WeightsOutput weights,
                     CallResult* result) {
  std::vector<RowState> per_head;  // [B, H, Sq]
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t h = 0; h < spec.num_heads; ++h) {
      for (std::int64_t i = 0; i < spec.query_len; ++i) {
        const bool empty = sees_no_key(spec, args, {b, h, i, 0});
        per_head.push_back(empty ? RowState::kAllHeadsEmpty : RowState::kSeesKeys);
        result->empty_rows += empty;
      }
    }
  }
  std::vector<RowState> over_heads;  // [B, Sq]
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t i = 0; i < spec.query_len; ++i) {
      std::int64_t empty = 0;
      for (std::int64_t h = 0; h < spec.num_heads; ++h) {
        const std::int64_t at = (b * spec.num_heads + h) * spec.query_len + i;
        empty += per_head[static_cast<std::size_t>(at)] == RowState::kAllHeadsEmpty;
      }
      over_heads.push_back(joined(empty, spec.num_heads));
    }
  }
  result->output_rows = per_head_output ? per_head : over_heads;
  if (weights == WeightsOutput::kPerHead) result->weights_rows = per_head;
  if (weights == WeightsOutput::kMean) result->weights_rows = over_heads;
}

}  // namespace headway::tools
