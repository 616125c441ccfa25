// The keys of a split, one block of four streams after the other.
#include "ops/attention/few_queries/key_split.h"

#include <algorithm>

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"

namespace headway {
namespace {

/// Four streams of `steps` keys: stream s begins at key first[s]; only the first `live` streams exist.
struct StreamBlock {
  std::int64_t first[kKeyStreams];
  std::int64_t steps;
  int live;
  bool always_visible;  // no limits and no masks apply
};

template <class Real>
void load_queries(const FewQueriesTask& t, float* queries) {
  const Dims& s = t.args.query.strides;
  const Real* base = t.args.query.as<Real>() + t.batch * s[0];
  for (std::int64_t r = 0; r < t.shape.rows; ++r) {
    const Real* from = base + t.head_of(r) * s[1] + t.query_of(r) * s[2];
    for (std::int64_t c = 0; c < t.spec.head_dim; ++c) {
      queries[r * t.spec.head_dim + c] = *t.spec.scale * widen(from[c * s[3]]);
    }
  }
}

/// Sets where the streams of a block begin and returns the stride between keys: in place, or packed when the innermost
/// stride is not 1.
template <class Real>
std::int64_t read(const FewQueriesTask& t, const ConstTensorView& view, const StreamBlock& block, std::int64_t columns,
                  float* scratch, const Real* (&streams)[kKeyStreams]) {
  const Dims& s = view.strides;
  const Real* base = view.as<Real>() + t.batch * s[0] + t.kv_head * s[1];
  Real* const packed = reinterpret_cast<Real*>(scratch);
  for (int stream = 0; stream < kKeyStreams; ++stream) {
    const Real* from = base + block.first[stream] * s[2];
    streams[stream] = from;
    if (s[3] == 1) continue;
    Real* to = packed + stream * block.steps * columns;
    streams[stream] = to;
    for (std::int64_t i = 0; i < block.steps; ++i) {
      for (std::int64_t c = 0; c < columns; ++c) *to++ = from[i * s[2] + c * s[3]];
    }
  }
  return s[3] == 1 ? s[2] : columns;
}

/// Softcap, masks and limits for one row.
void adjust_row(const FewQueriesTask& t, const Visibility& visibility, const StreamBlock& block, std::int64_t r,
                float* row, float* bias_row, float* live) {
  const std::int64_t n = block.steps * kKeyStreams;
  if (t.spec.softcap > 0) t.row_kernels.softcap_row(row, t.spec.softcap, n);
  const KeyRange seen = visibility.row(t.query_of(r));
  const bool masked = t.bias.any() && !block.always_visible;
  for (int s = 0; s < kKeyStreams; ++s) {
    float* const x = row + s * block.steps;
    const std::int64_t first = block.first[s];
    if (s >= block.live) {
      std::fill_n(x, block.steps, kHiddenScore);
      continue;
    }
    const std::int64_t begin = block.always_visible ? 0 : std::clamp<std::int64_t>(seen.begin - first, 0, block.steps);
    const std::int64_t end =
        block.always_visible ? block.steps : std::clamp<std::int64_t>(seen.end - first, begin, block.steps);
    std::fill(x, x + begin, kHiddenScore);
    std::fill(x + end, x + block.steps, kHiddenScore);
    if (!masked) {
      if (begin < end) *live = 1;
      continue;
    }
    t.bias.fill(t.batch, t.head_of(r), t.query_of(r), 1, first, block.steps, bias_row, block.steps);
    for (std::int64_t i = begin; i < end; ++i) {
      // Selected, not added: a hidden key's score may be NaN.
      x[i] = bias_row[i] == kHiddenScore ? kHiddenScore : x[i] + bias_row[i];
      if (bias_row[i] != kHiddenScore) *live = 1;
    }
  }
}

void multiply(const FewQueriesKernels& kernels, const FewScores<float>& tile) { kernels.score(tile); }
void multiply(const FewQueriesKernels& kernels, const FewScores<BFloat16>& tile) { kernels.score_bf16(tile); }
void multiply(const FewQueriesKernels& kernels, const FewContext<float>& tile) { kernels.context(tile); }
void multiply(const FewQueriesKernels& kernels, const FewContext<BFloat16>& tile) { kernels.context_bf16(tile); }

template <class Real>
void add_block(const FewQueriesTask& t, const Visibility& visibility, const StreamBlock& block, const SplitState& state,
               const FewQueriesScratch& scratch) {
  FewScores<Real> score{.key = {},
                        .key_stride = 0,
                        .steps = block.steps,
                        .queries = scratch.queries,
                        .rows = t.shape.rows,
                        .depth = t.spec.head_dim,
                        .scores = scratch.scores,
                        .row_stride = kBlockKeys};
  score.key_stride = read(t, t.args.key, block, t.spec.head_dim, scratch.key, score.key);
  multiply(t.kernels, score);
  for (std::int64_t r = 0; r < t.shape.rows; ++r) {
    float* const row = scratch.scores + r * kBlockKeys;
    adjust_row(t, visibility, block, r, row, scratch.bias, &state.live[r]);
    t.kernels.softmax({.scores = row,
                       .n = block.steps * kKeyStreams,
                       .maximum = &state.maximum[r],
                       .sum = &state.sum[r],
                       .rescale = &scratch.rescale[r]});
  }
  FewContext<Real> context{.value = {},
                           .value_stride = 0,
                           .steps = block.steps,
                           .scores = scratch.scores,
                           .row_stride = kBlockKeys,
                           .rows = t.shape.rows,
                           .columns = *t.spec.value_head_dim,
                           .rescale = scratch.rescale,
                           .context = state.context};
  context.value_stride = read(t, t.args.value, block, *t.spec.value_head_dim, scratch.value, context.value);
  multiply(t.kernels, context);
}

template <class Real>
void visit(const FewQueriesTask& t, const Visibility& visibility, const KeyRange& keys, bool always_visible,
           const SplitState& state, const FewQueriesScratch& scratch) {
  if (keys.empty()) return;
  const std::int64_t quarter = (keys.end - keys.begin) / kKeyStreams;
  for (std::int64_t i = 0; i < quarter; i += kBlockSteps) {
    StreamBlock block{{}, std::min(kBlockSteps, quarter - i), kKeyStreams, always_visible};
    for (int s = 0; s < kKeyStreams; ++s) block.first[s] = keys.begin + s * quarter + i;
    add_block<Real>(t, visibility, block, state, scratch);
  }
  // Up to three keys are left: one more step, in which the missing streams repeat the last key, hidden.
  const std::int64_t rest = keys.begin + quarter * kKeyStreams;
  if (rest < keys.end) {
    StreamBlock block{{}, 1, static_cast<int>(keys.end - rest), always_visible};
    for (int s = 0; s < kKeyStreams; ++s) block.first[s] = std::min(rest + s, keys.end - 1);
    add_block<Real>(t, visibility, block, state, scratch);
  }
}

}  // namespace

SplitCount run_key_split(const FewQueriesTask& t, const KeyRange& split, const SplitState& state,
                         const FewQueriesScratch& scratch) {
  const bool bf16 = t.spec.type == DataType::kBF16;
  bf16 ? load_queries<BFloat16>(t, scratch.queries) : load_queries<float>(t, scratch.queries);
  std::fill_n(state.maximum, t.shape.rows, kLowestScore);
  std::fill_n(state.sum, t.shape.rows, 0.0f);
  std::fill_n(state.live, t.shape.rows, 0.0f);
  std::fill_n(state.context, t.shape.rows * *t.spec.value_head_dim, 0.0f);

  const Visibility visibility(t.spec, t.args, t.batch);
  const auto within = [&](const KeyRange& keys) {
    return KeyRange{std::max(keys.begin, split.begin), std::min(keys.end, split.end)};
  };
  const auto length = [](const KeyRange& keys) { return std::max<std::int64_t>(keys.end - keys.begin, 0); };
  const KeyRange seen = within(visibility.any(0, t.spec.query_len));
  const KeyRange tail = within({visibility.tail_begin(), visibility.tail_end()});
  const auto visit_keys = bf16 ? &visit<BFloat16> : &visit<float>;
  visit_keys(t, visibility, seen, false, state, scratch);
  visit_keys(t, visibility, tail, true, state, scratch);

  SplitCount count{length(seen) + length(tail), length(tail) * t.shape.rows};
  for (std::int64_t i = 0; i < t.spec.query_len; ++i)
    count.pairs += t.shape.sharing * length(within(visibility.row(i)));
  return count;
}

}  // namespace headway
