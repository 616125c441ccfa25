// One division and one rounding per element; sinks join the denominator in double.
#include "ops/cached_attention/finish_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace headway {

RowEnd row_end(const CachedCall& call, std::int64_t head, float maximum, float sum, bool live) {
  const ConstTensorView& sinks = call.args.sinks;
  if (!sinks) {
    if (!live) return {0, -std::numeric_limits<float>::infinity(), true};
    return {1.0f / sum, static_cast<float>(maximum + std::log(static_cast<double>(sum))), false};
  }
  const double sink = reinterpret_cast<const float*>(sinks.data)[head * sinks.strides[0]];
  if (!live) return {0, static_cast<float>(sink), true};
  const double highest = std::max<double>(maximum, sink);
  const double share = std::exp(maximum - highest);
  const double denominator = sum * share + std::exp(sink - highest);
  return {static_cast<float>(share / denominator), static_cast<float>(highest + std::log(denominator)), false};
}

std::byte* out_row(const CachedCall& call, std::int64_t token, std::int64_t head) {
  const TensorView& out = call.args.out;
  const std::int64_t at = token * out.strides[0] + head * out.strides[1];
  return out.data + at * static_cast<std::int64_t>(size_bytes(out.type));
}

void write_log_sum_exp(const CachedCall& call, std::int64_t token, std::int64_t head, float value) {
  const TensorView& to = call.args.log_sum_exp;
  if (to) reinterpret_cast<float*>(to.data)[token * to.strides[0] + head * to.strides[1]] = value;
}

void write_empty_row(const CachedCall& call, std::byte* out) {
  std::memset(out, 0, static_cast<std::size_t>(*call.spec.value_head_dim) * size_bytes(call.spec.type));
}

void write_row(const CachedCall& call, std::int64_t token, std::int64_t head, const SoftmaxState& state) {
  const RowEnd end = row_end(call, head, *state.maximum, *state.sum, *state.live != 0);
  std::byte* const out = out_row(call, token, head);
  if (end.empty) {
    write_empty_row(call, out);
  } else {
    call.kernels.rows.of(call.spec.type).narrow(state.context, end.factor, out, *call.spec.value_head_dim);
  }
  write_log_sum_exp(call, token, head, end.log_sum_exp);
}

}  // namespace headway
