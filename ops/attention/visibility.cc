// Turns causal alignment, window, offset and length into three numbers per batch entry. Knows no user mask.
#include "ops/attention/visibility.h"

namespace headway {
namespace {

std::int64_t integer_at(const ConstTensorView& view, std::int64_t index) {
  const std::int64_t at = index * view.strides[0];
  return view.type == DataType::kI32 ? view.as<std::int32_t>()[at] : view.as<std::int64_t>()[at];
}

}  // namespace

Visibility::Visibility(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch)
    : tail_begin_(spec.key_len - spec.always_visible_keys), tail_end_(spec.key_len) {
  limit_ = tail_begin_;
  if (spec.key_lengths) limit_ = std::min(limit_, integer_at(args.key_lengths, batch));

  std::int64_t offset = 0;
  if (spec.causal == Causal::kBottomRight) {
    // Always visible keys are appended after the sequence and have no position of their own.
    offset = tail_begin_ - spec.query_len;
  } else if (spec.causal == Causal::kLastKey) {
    offset = limit_ - spec.query_len;
  } else if (args.offsets) {
    offset = integer_at(args.offsets, batch);
  }

  const std::int64_t open = spec.query_len + spec.key_len + 1;  // further than any query is from any key
  // Offsets are below 2^59 and windows below 2^40 (check_args, complete_spec), so no sum overflows.
  first_ = spec.window.left >= 0 ? offset - spec.window.left : -open;
  last_ = open;
  if (spec.window.right >= 0) last_ = offset + spec.window.right;
  if (spec.causal != Causal::kNone) last_ = std::min(last_, offset);
  first_ = std::clamp(first_, -open, open);
  last_ = std::clamp(last_, -open, open);
}

}  // namespace headway
