// One part of the keys, a block of four streams at a time.
#include "ops/attention/few_queries/part.h"

#include <algorithm>
#include <limits>

#include "ops/base/numeric.h"

namespace headway {
namespace {

constexpr std::int64_t kSteps = 64;  // keys of each stream in a block
constexpr std::int64_t kRow = kSteps * kKeyStreams;
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kHidden = -std::numeric_limits<float>::infinity();

std::int64_t round_up_to_line(std::int64_t floats) { return (floats + 15) / 16 * 16; }

struct Scratch {
  float* queries;  // [rows, D]
  float* scores;   // [rows, kRow]
  float* bias;     // [kRow]
  float* rescale;  // [rows]
  float* key;      // [kRow, D] of the spec's type, where the innermost stride is not 1
  float* value;    // [kRow, Dv]
};

/// Up to four runs of `steps` keys: run s begins at key first[s], of which the first `live` runs exist.
struct Block {
  std::int64_t first[kKeyStreams];
  std::int64_t steps;
  int live;
  bool tail;  // the visible tail: no limits, no masks
};

template <class Real>
void load_queries(const FewQueriesPart& p, float* queries) {
  const Dims& s = p.args.query.strides;
  const Real* base = p.args.query.as<Real>() + p.batch * s[0];
  for (std::int64_t r = 0; r < p.shape.rows; ++r) {
    const Real* from = base + p.head_of(r) * s[1] + p.query_of(r) * s[2];
    for (std::int64_t c = 0; c < p.spec.head_dim; ++c) {
      queries[r * p.spec.head_dim + c] = *p.spec.scale * widen(from[c * s[3]]);
    }
  }
}

/// Where the streams of a block begin, and the stride between keys: in place, or packed when the innermost stride is
/// not 1.
template <class Real>
std::int64_t read(const FewQueriesPart& p, const ConstTensorView& view, const Block& block, std::int64_t columns,
                  float* scratch, const Real* (&streams)[kKeyStreams]) {
  const Dims& s = view.strides;
  const Real* base = view.as<Real>() + p.batch * s[0] + p.kv_head * s[1];
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

/// Softcap, masks and limits of one row.
void adjust_row(const FewQueriesPart& p, const Visibility& visibility, const Block& block, std::int64_t r, float* row,
                float* bias_row, float* live) {
  const std::int64_t n = block.steps * kKeyStreams;
  if (p.spec.softcap > 0) p.row_kernels.softcap_row(row, p.spec.softcap, n);
  const KeyRange seen = visibility.row(p.query_of(r));
  const bool masked = p.bias.any() && !block.tail;
  for (int s = 0; s < kKeyStreams; ++s) {
    float* const x = row + s * block.steps;
    const std::int64_t first = block.first[s];
    if (s >= block.live) {
      std::fill_n(x, block.steps, kHidden);
      continue;
    }
    const std::int64_t begin = block.tail ? 0 : std::clamp<std::int64_t>(seen.begin - first, 0, block.steps);
    const std::int64_t end = block.tail ? block.steps : std::clamp<std::int64_t>(seen.end - first, begin, block.steps);
    std::fill(x, x + begin, kHidden);
    std::fill(x + end, x + block.steps, kHidden);
    if (!masked) {
      if (begin < end) *live = 1;
      continue;
    }
    p.bias.fill(p.batch, p.head_of(r), p.query_of(r), 1, first, block.steps, bias_row, block.steps);
    for (std::int64_t i = begin; i < end; ++i) {
      // Selected, not added: a hidden key's score may be NaN.
      x[i] = bias_row[i] == kHidden ? kHidden : x[i] + bias_row[i];
      if (bias_row[i] != kHidden) *live = 1;
    }
  }
}

void multiply(const FewQueriesKernels& kernels, const FewScores<float>& tile) { kernels.score(tile); }
void multiply(const FewQueriesKernels& kernels, const FewScores<BFloat16>& tile) { kernels.score_bf16(tile); }
void multiply(const FewQueriesKernels& kernels, const FewContext<float>& tile) { kernels.context(tile); }
void multiply(const FewQueriesKernels& kernels, const FewContext<BFloat16>& tile) { kernels.context_bf16(tile); }

template <class Real>
void add_block(const FewQueriesPart& p, const Visibility& visibility, const Block& block, const PartState& state,
               const Scratch& scratch) {
  FewScores<Real> score{.key = {},
                        .key_stride = 0,
                        .steps = block.steps,
                        .queries = scratch.queries,
                        .rows = p.shape.rows,
                        .depth = p.spec.head_dim,
                        .scores = scratch.scores,
                        .row_stride = kRow};
  score.key_stride = read(p, p.args.key, block, p.spec.head_dim, scratch.key, score.key);
  multiply(p.kernels, score);
  for (std::int64_t r = 0; r < p.shape.rows; ++r) {
    float* const row = scratch.scores + r * kRow;
    adjust_row(p, visibility, block, r, row, scratch.bias, &state.live[r]);
    p.kernels.softmax({.scores = row,
                       .n = block.steps * kKeyStreams,
                       .maximum = &state.maximum[r],
                       .sum = &state.sum[r],
                       .rescale = &scratch.rescale[r]});
  }
  FewContext<Real> context{.value = {},
                           .value_stride = 0,
                           .steps = block.steps,
                           .scores = scratch.scores,
                           .row_stride = kRow,
                           .rows = p.shape.rows,
                           .columns = *p.spec.value_head_dim,
                           .rescale = scratch.rescale,
                           .context = state.context};
  context.value_stride = read(p, p.args.value, block, *p.spec.value_head_dim, scratch.value, context.value);
  multiply(p.kernels, context);
}

template <class Real>
void visit(const FewQueriesPart& p, const Visibility& visibility, const KeyRange& keys, bool tail,
           const PartState& state, const Scratch& scratch) {
  if (keys.empty()) return;
  const std::int64_t quarter = (keys.end - keys.begin) / kKeyStreams;
  for (std::int64_t i = 0; i < quarter; i += kSteps) {
    Block block{{}, std::min(kSteps, quarter - i), kKeyStreams, tail};
    for (int s = 0; s < kKeyStreams; ++s) block.first[s] = keys.begin + s * quarter + i;
    add_block<Real>(p, visibility, block, state, scratch);
  }
  // Up to three keys are left: a step in which missing streams repeat the last key, hidden.
  const std::int64_t rest = keys.begin + quarter * kKeyStreams;
  if (rest < keys.end) {
    Block block{{}, 1, static_cast<int>(keys.end - rest), tail};
    for (int s = 0; s < kKeyStreams; ++s) block.first[s] = std::min(rest + s, keys.end - 1);
    add_block<Real>(p, visibility, block, state, scratch);
  }
}

}  // namespace

FewQueriesShape::FewQueriesShape(const AttentionSpec& spec)
    : sharing(*spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads : 0), rows(sharing * spec.query_len) {
  const std::int64_t width = std::max(spec.head_dim, *spec.value_head_dim);
  state_floats = 3 * round_up_to_line(rows) + round_up_to_line(rows * *spec.value_head_dim);
  scratch_floats = round_up_to_line(rows * spec.head_dim) + round_up_to_line(rows * kRow) + kRow +
                   round_up_to_line(rows) + 2 * round_up_to_line(kRow * width);
}

PartState::PartState(const FewQueriesShape& shape, float* at)
    : maximum(at),
      sum(maximum + round_up_to_line(shape.rows)),
      live(sum + round_up_to_line(shape.rows)),
      context(live + round_up_to_line(shape.rows)) {}

PartCount FewQueriesPart::run(const KeyRange& part, const PartState& state, float* at) const {
  Scratch scratch{};
  scratch.queries = at;
  scratch.scores = scratch.queries + round_up_to_line(shape.rows * spec.head_dim);
  scratch.bias = scratch.scores + round_up_to_line(shape.rows * kRow);
  scratch.rescale = scratch.bias + kRow;
  scratch.key = scratch.rescale + round_up_to_line(shape.rows);
  scratch.value = scratch.key + round_up_to_line(kRow * std::max(spec.head_dim, *spec.value_head_dim));
  const bool bf16 = spec.type == DataType::kBF16;
  (bf16 ? &load_queries<BFloat16> : &load_queries<float>)(*this, scratch.queries);
  std::fill_n(state.maximum, shape.rows, kLowest);
  std::fill_n(state.sum, shape.rows, 0.0f);
  std::fill_n(state.live, shape.rows, 0.0f);
  std::fill_n(state.context, shape.rows * *spec.value_head_dim, 0.0f);

  const Visibility visibility(spec, args, batch);
  const auto within = [&](const KeyRange& keys) {
    return KeyRange{std::max(keys.begin, part.begin), std::min(keys.end, part.end)};
  };
  const auto length = [](const KeyRange& keys) { return std::max<std::int64_t>(keys.end - keys.begin, 0); };
  const KeyRange seen = within(visibility.any(0, spec.query_len));
  const KeyRange tail = within({visibility.tail_begin(), visibility.tail_end()});
  const auto visit_keys = bf16 ? &visit<BFloat16> : &visit<float>;
  visit_keys(*this, visibility, seen, false, state, scratch);
  visit_keys(*this, visibility, tail, true, state, scratch);

  PartCount count{length(seen) + length(tail), length(tail) * shape.rows};
  for (std::int64_t i = 0; i < spec.query_len; ++i) count.pairs += shape.sharing * length(within(visibility.row(i)));
  return count;
}

}  // namespace headway
