// Blocks of four streams, one from each quarter of the keys; the arrangement depends on positions and not on where they
// lie, so that paging changes no bit.
#include "ops/cached_attention/few_task.h"

#include <algorithm>
#include <cmath>

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "ops/cached_attention/recompute_context.h"

namespace headway {
namespace {

constexpr std::int64_t kTableRows = kStreamSteps + kPrefetchSteps;

/// Four streams of `steps` keys: stream s begins at key first[s]; only the first `live` streams exist.
struct StreamBlock {
  std::int64_t first[kKeyStreams];
  std::int64_t steps;
  int live;
};

void load_queries(const HeadKeys& keys, std::int64_t rows, float* queries) {
  const CachedAttentionSpec& spec = keys.call.spec;
  const RowTypeKernels& kernels = keys.call.kernels.rows.of(spec.type);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const to = queries + r * spec.head_dim;
    kernels.widen(keys.query_row(keys.row(r)), to, spec.head_dim);
    for (std::int64_t c = 0; c < spec.head_dim; ++c) to[c] *= *spec.scale;
  }
}

/// Addresses of the rows of a block and of those to prefetch after them.
void fill_table(const HeadKeys& keys, const CacheTensor& tensor, const StreamBlock& block, const std::byte** table) {
  for (int s = 0; s < kKeyStreams; ++s, table += kTableRows) {
    const std::int64_t begin = block.first[s];
    const std::int64_t end = std::min(begin + block.steps + kPrefetchSteps, keys.keys.end);
    row_addresses(keys.places, tensor, begin, end, table);
    std::fill(table + (end - begin), table + block.steps + kPrefetchSteps, table[end - begin - 1]);
  }
}

/// Softcap, limits and biases of one row.
void adjust_row(const HeadKeys& keys, const StreamBlock& block, const CachedRow& row, float* scores, float* bias,
                float* live) {
  const CachedCall& call = keys.call;
  if (call.spec.softcap > 0) call.kernels.softmax.softcap_row(scores, call.spec.softcap, block.steps * kKeyStreams);
  const KeyRange seen = keys.seen(row);
  for (int s = 0; s < kKeyStreams; ++s) {
    float* const x = scores + s * block.steps;
    if (s >= block.live) {
      std::fill_n(x, block.steps, kHiddenScore);
      continue;
    }
    const std::int64_t begin = std::clamp<std::int64_t>(seen.begin - block.first[s], 0, block.steps);
    const std::int64_t end = std::clamp<std::int64_t>(seen.end - block.first[s], begin, block.steps);
    std::fill(x, x + begin, kHiddenScore);
    std::fill(x + end, x + block.steps, kHiddenScore);
    if (!call.bias.any()) {
      if (begin < end) *live = 1;
      continue;
    }
    call.bias.fill(keys.sequence, row.token, row.head, block.first[s] + begin, end - begin, bias);
    for (std::int64_t i = begin; i < end; ++i) {
      // Selected, not added: a hidden key's score may be NaN.
      const float b = bias[i - begin];
      x[i] = b == kHiddenScore ? kHiddenScore : x[i] + b;
      if (b != kHiddenScore) *live = 1;
    }
  }
}

template <class Real>
void add_block(const HeadKeys& keys, const FewPointedKernels<Real>& kernels, std::int64_t rows,
               const StreamBlock& block, const FewScratch& scratch, const SoftmaxState& state) {
  const CachedCall& call = keys.call;
  fill_table(keys, keys.key, block, scratch.key);
  fill_table(keys, keys.value, block, scratch.value);
  FewPointedScores<Real> score{.key = {},
                               .steps = block.steps,
                               .queries = scratch.queries,
                               .rows = rows,
                               .depth = call.spec.head_dim,
                               .scores = scratch.scores,
                               .row_stride = kStreamKeys};
  FewPointedContext<Real> context{.value = {},
                                  .steps = block.steps,
                                  .scores = scratch.scores,
                                  .row_stride = kStreamKeys,
                                  .rows = rows,
                                  .columns = *call.spec.value_head_dim,
                                  .rescale = scratch.rescale,
                                  .context = state.context};
  for (int s = 0; s < kKeyStreams; ++s) {
    score.key[s] = scratch.key + s * kTableRows;
    context.value[s] = scratch.value + s * kTableRows;
  }
  kernels.score(score);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const row = scratch.scores + r * kStreamKeys;
    adjust_row(keys, block, keys.row(r), row, scratch.bias, &state.live[r]);
    call.kernels.few.softmax({.scores = row,
                              .n = block.steps * kKeyStreams,
                              .maximum = &state.maximum[r],
                              .sum = &state.sum[r],
                              .rescale = &scratch.rescale[r]});
  }
  kernels.context(context);
}

template <class Real>
void add_blocks(const HeadKeys& keys, const FewPointedKernels<Real>& kernels, std::int64_t rows,
                const FewScratch& scratch, const SoftmaxState& state) {
  const std::int64_t quarter = (keys.keys.end - keys.keys.begin) / kKeyStreams;
  for (std::int64_t i = 0; i < quarter; i += kStreamSteps) {
    StreamBlock block{{}, std::min(kStreamSteps, quarter - i), kKeyStreams};
    for (int s = 0; s < kKeyStreams; ++s) block.first[s] = keys.keys.begin + s * quarter + i;
    add_block(keys, kernels, rows, block, scratch, state);
  }
  // Up to three keys are left: one more step, in which the missing streams repeat the last key, hidden.
  const std::int64_t rest = keys.keys.begin + quarter * kKeyStreams;
  if (rest == keys.keys.end) return;
  StreamBlock block{{}, 1, static_cast<int>(keys.keys.end - rest)};
  for (int s = 0; s < kKeyStreams; ++s) block.first[s] = std::min(rest + s, keys.keys.end - 1);
  add_block(keys, kernels, rows, block, scratch, state);
}

}  // namespace

void run_few_rows(const HeadKeys& keys, const FewScratch& scratch, const SoftmaxState& state) {
  const CachedCall& call = keys.call;
  const std::int64_t rows = keys.sequence.tokens * call.geometry.sharing;
  const std::int64_t columns = *call.spec.value_head_dim;
  std::fill_n(state.maximum, rows, kLowestScore);
  std::fill_n(state.sum, rows, 0.0f);
  std::fill_n(state.live, rows, 0.0f);
  std::fill_n(state.context, rows * columns, 0.0f);
  if (keys.keys.empty()) return;
  load_queries(keys, rows, scratch.queries);
  const FewPointedQueriesKernels& kernels = call.kernels.few_pointed;
  switch (call.spec.cache_type) {
    case DataType::kBF16:
      add_blocks(keys, kernels.bf16, rows, scratch, state);
      break;
    case DataType::kF16:
      add_blocks(keys, kernels.f16, rows, scratch, state);
      break;
    default:
      add_blocks(keys, kernels.f32, rows, scratch, state);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const context = state.context + r * columns;
    if (state.live[r] == 0 || !std::isfinite(state.sum[r]) || all_finite(context, columns)) continue;
    recompute_context(keys, keys.row(r), {scratch.queries + r * call.spec.head_dim, 1}, {context, 1}, &state.maximum[r],
                      &state.sum[r]);
  }
}

}  // namespace headway
