// Keys are read once per block for all rows; blocks, spans and their folding are those of query tiles.
#include "ops/cached_attention/ordered_task.h"

#include <algorithm>
#include <cmath>

#include "ops/base/hidden_score.h"
#include "ops/base/layout.h"
#include "ops/base/numeric.h"
#include "ops/cached_attention/recompute_context.h"

namespace headway {
namespace {

class OrderedRows {
 public:
  OrderedRows(const HeadKeys& keys, const CachedWorkspace& workspace, std::byte* memory, int worker)
      : keys_(keys),
        call_(keys.call),
        workspace_(workspace),
        memory_(memory),
        worker_(worker),
        rows_(keys.sequence.tokens * keys.call.geometry.sharing),
        scratch_(workspace.few_scratch(memory, worker)) {}

  SoftmaxState run() {
    load_queries();
    const auto fold = [&](std::int64_t a, std::int64_t b) { fold_states(state(a), state(b)); };
    StateTree spans(fold);
    constexpr std::int64_t kBlock = CachedGeometry::kKeyBlock;
    const std::int64_t span_keys = call_.geometry.span_keys;
    std::int64_t key = keys_.keys.begin;
    do {
      const std::int64_t span = key / span_keys;
      const std::int64_t span_end = std::min(keys_.keys.end, (span + 1) * span_keys);
      state_ = state(spans.pending());
      clear();
      while (key < span_end) {
        const std::int64_t end = std::min(span_end, (key / kBlock + 1) * kBlock);
        add_block({key, end});
        key = end;
      }
      spans.add(span, spans.pending());
    } while (key < keys_.keys.end);
    const SoftmaxState result = state(spans.finish());
    recompute(result);
    return result;
  }

 private:
  SoftmaxState state(std::int64_t level) const { return workspace_.few_state(memory_, worker_, level); }
  std::int64_t columns() const { return *call_.spec.value_head_dim; }

  void load_queries() {
    const RowTypeKernels& kernels = call_.kernels.rows.of(call_.spec.type);
    for (std::int64_t r = 0; r < rows_; ++r) {
      float* const to = scratch_.queries + r * call_.spec.head_dim;
      kernels.widen(keys_.query_row(keys_.row(r)), to, call_.spec.head_dim);
      for (std::int64_t c = 0; c < call_.spec.head_dim; ++c) to[c] *= *call_.spec.scale;
    }
  }

  void clear() {
    std::fill_n(state_.maximum, rows_, kLowestScore);
    std::fill_n(state_.sum, rows_, 0.0f);
    std::fill_n(state_.live, rows_, 0.0f);
    std::fill_n(state_.context, rows_ * columns(), 0.0f);
  }

  /// Softcap, limits and biases of one row.
  void adjust(const KeyRange& block, const CachedRow& row, float* x, float* live) const {
    const std::int64_t count = block.end - block.begin;
    if (call_.spec.softcap > 0) call_.kernels.softmax.softcap_row(x, call_.spec.softcap, count);
    const KeyRange seen = keys_.seen(row);
    const std::int64_t begin = std::clamp<std::int64_t>(seen.begin - block.begin, 0, count);
    const std::int64_t end = std::clamp<std::int64_t>(seen.end - block.begin, begin, count);
    std::fill(x, x + begin, kHiddenScore);
    std::fill(x + end, x + count, kHiddenScore);
    if (!call_.bias.any()) {
      if (begin < end) *live = 1;
      return;
    }
    call_.bias.fill(keys_.sequence, row.token, row.head, block.begin + begin, end - begin, scratch_.bias);
    for (std::int64_t i = begin; i < end; ++i) {
      // Selected, not added: a hidden key's score may be NaN.
      const float b = scratch_.bias[i - begin];
      x[i] = b == kHiddenScore ? kHiddenScore : x[i] + b;
      if (b != kHiddenScore) *live = 1;
    }
  }

  void add_block(const KeyRange& block) {
    const FewInOrderKernels& kernels = call_.kernels.in_order;
    switch (call_.spec.cache_type) {
      case DataType::kBF16:
        return add_block(block, kernels.bf16);
      case DataType::kF16:
        return add_block(block, kernels.f16);
      default:
        return add_block(block, kernels.f32);
    }
  }

  template <class Real>
  void add_block(const KeyRange& block, const FewInOrderOf<Real>& kernels) {
    const std::int64_t count = block.end - block.begin;
    // After the rows of a table come those that are read next, to be prefetched: the values of the block after its
    // keys, the keys of the next block after its values.
    const std::int64_t value_ahead = std::min(count, kOrderedAhead);
    const std::int64_t key_ahead = std::min(keys_.keys.end - block.end, kOrderedAhead);
    row_addresses(keys_.places, keys_.key, block.begin, block.end, scratch_.key);
    row_addresses(keys_.places, keys_.value, block.begin, block.end, scratch_.value);
    std::copy_n(scratch_.value, value_ahead, scratch_.key + count);
    row_addresses(keys_.places, keys_.key, block.end, block.end + key_ahead, scratch_.value + count);
    kernels.score({.keys = scratch_.key,
                   .count = count,
                   .ahead = value_ahead,
                   .depth = call_.spec.head_dim,
                   .depth_block = CachedGeometry::kDepthBlock,
                   .queries = scratch_.queries,
                   .rows = rows_,
                   .scores = scratch_.scores,
                   .row_stride = kStreamKeys});
    for (std::int64_t r = 0; r < rows_; ++r)
      adjust(block, keys_.row(r), scratch_.scores + r * kStreamKeys, &state_.live[r]);
    call_.kernels.in_order.softmax({.scores = scratch_.scores,
                                    .row_stride = kStreamKeys,
                                    .rows = rows_,
                                    .n = count,
                                    .maximum = state_.maximum,
                                    .sum = state_.sum,
                                    .rescale = scratch_.rescale});
    kernels.context({.values = scratch_.value,
                     .keys = count,
                     .ahead = key_ahead,
                     .probs = scratch_.scores,
                     .row_stride = kStreamKeys,
                     .rows = rows_,
                     .columns = columns(),
                     .rescale = scratch_.rescale,
                     .context = state_.context});
  }

  void fold_states(const SoftmaxState& left, const SoftmaxState& right) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      call_.kernels.states.fold_row({.rows = 1,
                                     .columns = columns(),
                                     .maximum = left.maximum + r,
                                     .sum = left.sum + r,
                                     .live = left.live + r,
                                     .context = left.context + r * columns(),
                                     .right_maximum = right.maximum + r,
                                     .right_sum = right.sum + r,
                                     .right_live = right.live + r,
                                     .right_context = right.context + r * columns()});
    }
  }

  void recompute(const SoftmaxState& result) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      float* const context = result.context + r * columns();
      if (result.live[r] == 0 || !std::isfinite(result.sum[r]) || all_finite(context, columns())) continue;
      recompute_context(keys_, keys_.row(r), {scratch_.queries + r * call_.spec.head_dim, 1}, {context, 1},
                        &result.maximum[r], &result.sum[r]);
    }
  }

  const HeadKeys& keys_;
  const CachedCall& call_;
  const CachedWorkspace& workspace_;
  std::byte* memory_;
  int worker_;
  std::int64_t rows_;
  FewScratch scratch_;
  SoftmaxState state_;
};

}  // namespace

SoftmaxState run_ordered_rows(const HeadKeys& keys, const CachedWorkspace& workspace, std::byte* memory, int worker) {
  return OrderedRows(keys, workspace, memory, worker).run();
}

}  // namespace headway
