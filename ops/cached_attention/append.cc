// Token by token: each head is widened into a row on the stack, normalised, rotated, and rounded to where it belongs.
#include "ops/cached_attention/append.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/base/layout.h"
#include "ops/cached_attention/cache_rows.h"
#include "ops/cached_attention/sequences.h"
#include "ops/simd/cache_rows.h"
#include "ops/simd/norm.h"

namespace headway {
namespace {

constexpr std::int64_t kTaskElements = 16384;

std::int64_t bytes_of(DataType type) { return static_cast<std::int64_t>(size_bytes(type)); }

/// Norm and rotation of the heads of one argument, query or key.
class HeadRows {
 public:
  HeadRows(const ConstTensorView& view, const AppendArgs& args, const ConstTensorView& weight,
           const CacheRowKernels& rows, const NormKernels& norm)
      : view_(view), args_(args), weight_(weight), kernels_(rows), norm_(norm), head_dim_(view.dims[2]) {}

  bool changes() const { return args_.norm.enabled || args_.rotary != nullptr; }
  const std::byte* source(std::int64_t token, std::int64_t head) const {
    return view_.data + (token * view_.strides[0] + head * view_.strides[1]) * bytes_of(view_.type);
  }
  /// Head `head` of a token, at `position`, to `to` of any float type.
  void transform(std::int64_t token, std::int64_t head, std::int64_t position, float token_norm, DataType type,
                 std::byte* to) const {
    const std::byte* const from = source(token, head);
    if (!changes() && type == view_.type) {
      std::memcpy(to, from, static_cast<std::size_t>(head_dim_ * bytes_of(type)));
      return;
    }
    float row[kMaxHeadDim];
    kernels_.of(view_.type).widen(from, row, head_dim_);
    if (args_.norm.enabled) normalise(head, token_norm, row);
    if (args_.rotary != nullptr) {
      const RotaryTable& table = *args_.rotary;
      const auto rotate = table.interleaved() ? kernels_.rotate_interleaved : kernels_.rotate_half;
      rotate({row, table.cos(position), table.sin(position), table.rotary_dim() / 2});
    }
    kernels_.of(type).narrow(row, 1, to, head_dim_);
  }
  /// 1 / sqrt(mean square + epsilon) over all heads of a token, where the norm runs across them.
  float norm_of_token(std::int64_t token) const {
    if (!args_.norm.enabled || !args_.norm.across_heads) return 1;
    double squares = 0;
    float row[kMaxHeadDim];
    for (std::int64_t h = 0; h < view_.dims[1]; ++h) {
      kernels_.of(view_.type).widen(source(token, h), row, head_dim_);
      for (std::int64_t d = 0; d < head_dim_; ++d) squares += double{row[d]} * row[d];
    }
    const double mean = squares / static_cast<double>(view_.dims[1] * head_dim_);
    return static_cast<float>(1 / std::sqrt(mean + args_.norm.epsilon));
  }

 private:
  void normalise(std::int64_t head, float token_norm, float* row) const {
    const HeadNorm& norm = args_.norm;
    if (norm.across_heads) {
      for (std::int64_t d = 0; d < head_dim_; ++d) row[d] *= token_norm;
    } else {
      norm_.rms_norm({row, row, nullptr, nullptr, head_dim_, norm.epsilon});
    }
    const std::int64_t stride = weight_ ? weight_.strides[0] : 0;
    const float* const weight =
        weight_ ? reinterpret_cast<const float*>(weight_.data) + (norm.across_heads ? head * head_dim_ * stride : 0)
                : nullptr;
    if (weight == nullptr) return;
    if (stride == 1) {
      for (std::int64_t d = 0; d < head_dim_; ++d) row[d] *= norm.weight_offset + weight[d];
    } else {
      for (std::int64_t d = 0; d < head_dim_; ++d) row[d] *= norm.weight_offset + weight[d * stride];
    }
  }

  ConstTensorView view_;
  const AppendArgs& args_;
  ConstTensorView weight_;
  const CacheRowKernels& kernels_;
  const NormKernels& norm_;
  std::int64_t head_dim_;
};

/// Where a token goes, and at which position it is rotated.
struct TokenPlace {
  bool written = false;
  CacheRun at{};
  std::int64_t position = 0;
};

class Appender {
 public:
  Appender(const AppendArgs& args, const KvCache& cache, const AppendSizes& sizes)
      : args_(args), cache_(cache), sizes_(sizes), rows_(cache_row_kernels()), norm_(norm_kernels()) {}

  std::int64_t tokens_per_task() const {
    std::int64_t elements = 1;
    if (args_.key) elements += args_.key.dims[1] * (args_.key.dims[2] + args_.value.dims[2]);
    if (args_.query) elements += args_.query.dims[1] * args_.query.dims[2];
    return std::max<std::int64_t>(1, kTaskElements / elements);
  }

  void run(std::int64_t begin, std::int64_t end) const {
    std::int64_t b = args_.lengths ? sequence_of(begin) : 0;
    for (std::int64_t t = begin; t < end; ++t) {
      while (args_.lengths && t >= first_token(b + 1)) ++b;
      const TokenPlace place = place_of(t, b);
      if (args_.key && place.written) write_key_value(t, place);
      if (args_.query) turn_query(t, place.position);
    }
  }

 private:
  std::int64_t first_token(std::int64_t b) const { return args_.query_starts ? integer_at(args_.query_starts, b) : b; }
  /// The sequence that a token is of: the last that begins at it or before it.
  std::int64_t sequence_of(std::int64_t token) const {
    std::int64_t low = 0, high = sizes_.batch;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (first_token(middle) <= token ? low : high) = middle;
    }
    return low;
  }

  TokenPlace place_of(std::int64_t token, std::int64_t b) const {
    TokenPlace place;
    if (args_.lengths) {
      const std::int64_t length = integer_at(args_.lengths, b);
      place.position = length - first_token(b + 1) + token;
      // Of a ring's rows the newest positions have the last word.
      place.written = args_.key.present && (!cache_.ring || place.position >= length - cache_capacity(cache_));
      if (place.written) place.at = SequencePlaces(cache_, b).run(place.position, place.position + 1);
    } else if (args_.slot_mapping) {
      const std::int64_t row = wide_integer_at(args_.slot_mapping, token);
      place.written = row >= 0 && args_.key.present;
      if (place.written) place.at = {row / cache_.key.dims[2], row % cache_.key.dims[2], 1};
    }
    if (args_.positions) place.position = integer_at(args_.positions, token);
    return place;
  }

  void write_key_value(std::int64_t token, const TokenPlace& place) const {
    const HeadRows keys(args_.key, args_, args_.norm.key_weight, rows_, norm_);
    const float norm = keys.norm_of_token(token);
    for (std::int64_t h = 0; h < args_.key.dims[1]; ++h) {
      keys.transform(token, h, place.position, norm, cache_.key.type, at(cache_.key, h, place.at));
      copy_value(token, h, at(cache_.value, h, place.at));
    }
  }
  static std::byte* at(const TensorView& view, std::int64_t head, const CacheRun& run) {
    const std::int64_t offset = run.outer * view.strides[0] + head * view.strides[1] + run.row * view.strides[2];
    return view.data + offset * bytes_of(view.type);
  }
  void copy_value(std::int64_t token, std::int64_t head, std::byte* to) const {
    const ConstTensorView& value = args_.value;
    const std::byte* const from =
        value.data + (token * value.strides[0] + head * value.strides[1]) * bytes_of(value.type);
    if (value.type == cache_.value.type) {
      std::memcpy(to, from, static_cast<std::size_t>(value.dims[2] * bytes_of(value.type)));
      return;
    }
    float row[kMaxHeadDim];
    rows_.of(value.type).widen(from, row, value.dims[2]);
    rows_.of(cache_.value.type).narrow(row, 1, to, value.dims[2]);
  }
  void turn_query(std::int64_t token, std::int64_t position) const {
    const HeadRows queries(args_.query, args_, args_.norm.query_weight, rows_, norm_);
    if (!queries.changes()) return;
    const float norm = queries.norm_of_token(token);
    for (std::int64_t h = 0; h < args_.query.dims[1]; ++h) {
      queries.transform(token, h, position, norm, args_.query.type, const_cast<std::byte*>(queries.source(token, h)));
    }
  }

  const AppendArgs& args_;
  const KvCache& cache_;
  AppendSizes sizes_;
  CacheRowKernels rows_;
  NormKernels norm_;
};

}  // namespace

void append(const AppendArgs& args, const KvCache& cache, const Threads& threads) {
  const AppendSizes sizes = check_append(args, cache);
  const Appender appender(args, cache, sizes);
  const std::int64_t per_task = appender.tokens_per_task();
  threads.parallel_for(ceil_div(sizes.tokens, per_task), [&](std::int64_t task, int) {
    appender.run(task * per_task, std::min(sizes.tokens, (task + 1) * per_task));
  });
}

}  // namespace headway
