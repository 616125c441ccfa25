// Keys are transposed once per block for all rows; blocks, spans and their folding are those of query tiles.
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
        scratch_(workspace.few_scratch(memory, worker)),
        wide_(workspace.tile_scratch(memory, worker).key) {}

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

  /// Scores of keys [begin, begin + count) of the block, at most a panel of them. The next `ahead` are prefetched.
  void score(std::int64_t begin, std::int64_t count, std::int64_t ahead) {
    const CachedGeometry& geometry = call_.geometry;
    const std::int64_t depth = call_.spec.head_dim;
    const auto vectors = static_cast<int>(ceil_div(count, geometry.lanes));
    const std::byte** const rows = scratch_.key + begin;
    // Lanes beyond the last key repeat it; the table has room for them.
    const std::byte* const last = rows[count - 1];
    const std::byte* lane_rows[kMaxPanelLanes];
    for (std::int64_t lane = 0; lane < vectors * geometry.lanes; ++lane)
      lane_rows[lane] = lane < count ? rows[lane] : last;
    if (call_.spec.cache_type == DataType::kF16) {
      for (std::int64_t lane = 0; lane < vectors * geometry.lanes; ++lane) {
        float* const row = wide_ + std::min(lane, count - 1) * depth;
        if (lane < count) call_.kernels.rows.f16.widen(rows[lane], row, depth);
        lane_rows[lane] = reinterpret_cast<const std::byte*>(row);
      }
    }
    const bool bf16 = call_.spec.cache_type == DataType::kBF16;
    (bf16 ? call_.kernels.tile.load_bf16 : call_.kernels.tile.load)({.rows = lane_rows,
                                                                     .column_stride = 1,
                                                                     .columns = depth,
                                                                     .scale = 1,
                                                                     .vectors = vectors,
                                                                     .panel = scratch_.panel});
    call_.kernels.in_order.score({.panel = scratch_.panel,
                                  .vectors = vectors,
                                  .depth = depth,
                                  .depth_block = CachedGeometry::kDepthBlock,
                                  .queries = scratch_.queries,
                                  .rows = rows_,
                                  .scores = scratch_.scores + begin,
                                  .row_stride = kStreamKeys,
                                  .next = scratch_.key + begin + count,
                                  .next_rows = ahead,
                                  .next_bytes = depth * static_cast<std::int64_t>(size_bytes(call_.spec.cache_type))});
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
    const std::int64_t count = block.end - block.begin;
    // Addresses beyond the block are those of what comes next, to be prefetched.
    const std::int64_t panel = call_.geometry.tile_lanes;
    const std::int64_t key_end = std::min(block.end + panel, keys_.keys.end);
    const std::int64_t value_end = std::min(block.end + kPrefetchSteps, keys_.keys.end);
    row_addresses(keys_.places, keys_.key, block.begin, key_end, scratch_.key);
    row_addresses(keys_.places, keys_.value, block.begin, value_end, scratch_.value);
    const std::byte** const after = scratch_.value + (value_end - block.begin);
    std::fill(after, scratch_.value + count + kPrefetchSteps, after[-1]);
    for (std::int64_t begin = 0; begin < count; begin += panel) {
      const std::int64_t keys = std::min(panel, count - begin);
      score(begin, keys, std::min(panel, key_end - block.begin - begin - keys));
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      float* const x = scratch_.scores + r * kStreamKeys;
      adjust(block, keys_.row(r), x, &state_.live[r]);
      call_.kernels.in_order.softmax({.scores = x,
                                      .n = count,
                                      .maximum = &state_.maximum[r],
                                      .sum = &state_.sum[r],
                                      .rescale = &scratch_.rescale[r]});
    }
    const FewInOrderKernels& kernels = call_.kernels.in_order;
    if (call_.spec.cache_type == DataType::kBF16) {
      kernels.context_bf16(context_of<BFloat16>(count));
    } else if (call_.spec.cache_type == DataType::kF16) {
      kernels.context_f16(context_of<Float16>(count));
    } else {
      kernels.context(context_of<float>(count));
    }
  }
  template <class Real>
  OrderedContext<Real> context_of(std::int64_t count) const {
    return {.values = scratch_.value,
            .keys = count,
            .probs = scratch_.scores,
            .row_stride = kStreamKeys,
            .rows = rows_,
            .columns = columns(),
            .rescale = scratch_.rescale,
            .context = state_.context};
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

  static constexpr std::int64_t kMaxPanelLanes = 64;

  const HeadKeys& keys_;
  const CachedCall& call_;
  const CachedWorkspace& workspace_;
  std::byte* memory_;
  int worker_;
  std::int64_t rows_;
  FewScratch scratch_;
  float* wide_;  // [key block, D]
  SoftmaxState state_;
};

}  // namespace

SoftmaxState run_ordered_rows(const HeadKeys& keys, const CachedWorkspace& workspace, std::byte* memory, int worker) {
  return OrderedRows(keys, workspace, memory, worker).run();
}

}  // namespace headway
