// The steps of one block, in order. Hidden keys get weight 0 by selection; a value row that is hidden and not finite is
// noticed in the result and left out of a second sum.
#include "ops/attention/onednn_tiles_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/attention/implementation.h"

namespace headway {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// [S, width] of one head as a pointer to its first element.
const float* head_data(const ConstTensorView& t, std::int64_t b, std::int64_t h) {
  return t.as<float>() + b * t.strides[0] + h * t.strides[1];
}

bool writes_all_keys(ScoresOutput mode) { return mode == ScoresOutput::kScaled || mode == ScoresOutput::kSoftcapped; }

std::int64_t bytes_of(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

}  // namespace

OnednnBlock::OnednnBlock(const OnednnRun& run, const Place& place, const OnednnBlockScratch& scratch, int worker)
    : run_(run), place_(place), at_(scratch), worker_(worker), visibility_(run.spec, run.args, place.batch) {
  range_ = visibility_.any(place.begin, place.begin + place.rows);
  tail_ = {visibility_.tail_begin(), visibility_.tail_end()};
  if (writes_all_keys(run.spec.scores_output)) range_ = {0, visibility_.tail_begin()};
  kv_head_ = place.head / (run.spec.num_heads / run.spec.num_kv_heads);
  pieces([&](const KeyPiece& piece) {
    columns_ += piece.columns;
    ++num_pieces_;
  });
  for (std::int64_t i = place.begin; i < place.begin + place.rows; ++i) {
    const KeyRange row = visibility_.row(i);
    pairs_ += std::max<std::int64_t>(row.end - row.begin, 0) + tail_.end - tail_.begin;
  }
}

void OnednnBlock::compute() {
  scale_query();
  score();
  softmax();
  weigh_values();
  write_out();
}

void OnednnBlock::scale_query() {
  ProfileScope scope(run_.profiler, worker_, kZonePack);
  const ConstTensorView& q = run_.args.query;
  const std::int64_t d = run_.spec.head_dim;
  const float scale = *run_.spec.scale;
  for (std::int64_t i = 0; i < place_.rows; ++i) {
    const float* from = head_data(q, place_.batch, place_.head) + (place_.begin + i) * q.strides[2];
    float* to = at_.query + i * d;
    if (q.strides[3] == 1) {
      for (std::int64_t c = 0; c < d; ++c) to[c] = from[c] * scale;
    } else {
      for (std::int64_t c = 0; c < d; ++c) to[c] = from[c * q.strides[3]] * scale;
    }
  }
  scope.add({.bytes = bytes_of(2 * place_.rows * d)});
}

float* OnednnBlock::score_row(const KeyPiece& piece, std::int64_t i) const {
  return at_.scores + place_.rows * piece.column + i * piece.columns;
}

/// True when a product can read the rows where they are: unit steps, all columns there, and a matmul for that stride
/// that is content with the scratch booked for the dense one.
bool OnednnBlock::in_place(const ConstTensorView& t, const KeyPiece& piece, const TileMatmulSpec& spec) const {
  const std::int64_t width = t.dims[3];
  if (piece.keys != piece.columns || (t.strides[3] != 1 && width > 1) || t.strides[2] < width) return false;
  return run_.matmuls.scratch_bytes(spec) <= at_.matmul_bytes;
}

/// Rows of a piece copied side by side, zeros beyond the last key.
OnednnBlock::Rows OnednnBlock::dense_rows(const ConstTensorView& t, const KeyPiece& piece, std::int64_t width) const {
  const float* from = head_data(t, place_.batch, kv_head_) + piece.key * t.strides[2];
  for (std::int64_t j = 0; j < piece.columns; ++j) {
    float* to = at_.keys + j * width;
    const float* row = from + j * t.strides[2];
    for (std::int64_t c = 0; c < width; ++c) to[c] = j < piece.keys ? row[c * t.strides[3]] : 0.0f;
  }
  return {at_.keys, width};
}

void OnednnBlock::score() {
  ProfileScope scope(run_.profiler, worker_, kZoneScores);
  const ConstTensorView& k = run_.args.key;
  const std::int64_t d = run_.spec.head_dim;
  pieces([&](const KeyPiece& piece) {
    TileMatmulSpec spec{place_.rows, piece.columns, d, d, k.strides[2], piece.columns, true, false};
    Rows rows{head_data(k, place_.batch, kv_head_) + piece.key * k.strides[2], k.strides[2]};
    if (!in_place(k, piece, spec)) rows = dense_rows(k, piece, d);
    spec.b_stride = rows.stride;
    run_.matmuls.run(spec, at_.query, rows.data, score_row(piece, 0), at_.matmul, at_.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * d * pairs_,
             .flops_executed = 2 * d * place_.rows * columns_,
             .bytes = bytes_of((place_.rows + columns_) * d + place_.rows * columns_)});
}

/// Bias of row i over all columns into at_.bias: user masks, then −inf where integers hide and in padding columns.
/// Returns whether anything is hidden.
bool OnednnBlock::fill_bias(std::int64_t i) {
  const KeyRange visible = visibility_.row(place_.begin + i);
  bool padded = false;
  pieces([&](const KeyPiece& piece) {
    float* bias = at_.bias + piece.column;
    run_.bias.fill(place_.batch, place_.head, place_.begin + i, 1, piece.key, piece.keys, bias, piece.keys);
    // Keys of the piece that lie before the tail and outside the row's range.
    const std::int64_t end = std::clamp(tail_.begin - piece.key, std::int64_t{0}, piece.keys);
    const std::int64_t from = std::clamp(visible.begin - piece.key, std::int64_t{0}, end);
    const std::int64_t to = std::clamp(visible.end - piece.key, from, end);
    std::fill(bias, bias + from, kHidden);
    std::fill(bias + to, bias + end, kHidden);
    std::fill(bias + piece.keys, bias + piece.columns, kHidden);
    padded = padded || piece.keys != piece.columns || from > 0 || to < end;
  });
  bias_row_ = i;
  return padded || run_.bias.any();
}

void OnednnBlock::gather(std::int64_t i, float* row) const {
  pieces([&](const KeyPiece& piece) {
    std::memcpy(row + piece.column, score_row(piece, i), sizeof(float) * static_cast<std::size_t>(piece.columns));
  });
}

void OnednnBlock::scatter(std::int64_t i, const float* row) const {
  pieces([&](const KeyPiece& piece) {
    std::memcpy(score_row(piece, i), row + piece.column, sizeof(float) * static_cast<std::size_t>(piece.columns));
  });
}

/// One row of args.scores from a row of all pieces; keys that were not computed get `elsewhere`.
void OnednnBlock::write_scores(std::int64_t i, const float* row, float elsewhere) const {
  const TensorView& scores = run_.args.scores;
  const bool mean = run_.spec.scores_output == ScoresOutput::kMeanProbabilities;
  const std::int64_t query = place_.begin + i;
  float* to = scores.as<float>() + place_.batch * scores.strides[0];
  to += mean ? query * scores.strides[1] : place_.head * scores.strides[1] + query * scores.strides[2];
  const std::int64_t step = scores.strides[mean ? 2 : 3];
  if (mean) {
    if (std::isnan(elsewhere)) {
      for (std::int64_t j = 0; j < run_.spec.key_len; ++j) to[j * step] = elsewhere;
    }
    const float share = 1.0f / static_cast<float>(run_.spec.num_heads);
    pieces([&](const KeyPiece& piece) {
      for (std::int64_t j = 0; j < piece.keys; ++j) to[(piece.key + j) * step] += row[piece.column + j] * share;
    });
    return;
  }
  for (std::int64_t j = 0; j < run_.spec.key_len; ++j) to[j * step] = elsewhere;
  pieces([&](const KeyPiece& piece) {
    for (std::int64_t j = 0; j < piece.keys; ++j) to[(piece.key + j) * step] = row[piece.column + j];
  });
}

void OnednnBlock::softmax_row(std::int64_t i) {
  const ScoresOutput mode = run_.spec.scores_output;
  const KeyPiece first{0, 0, columns_, 0};
  float* row = num_pieces_ == 1 ? score_row(first, i) : at_.row;
  if (num_pieces_ > 1) gather(i, row);
  if (mode == ScoresOutput::kScaled) write_scores(i, row, 0);
  if (run_.spec.softcap > 0) run_.kernels.softcap_row(row, run_.spec.softcap, columns_);
  if (mode == ScoresOutput::kSoftcapped) write_scores(i, row, 0);

  const bool same_bias = bias_row_ >= 0 && run_.bias.same_for_all_queries() &&
                         visibility_.row(place_.begin + i).begin == visibility_.row(place_.begin + bias_row_).begin &&
                         visibility_.row(place_.begin + i).end == visibility_.row(place_.begin + bias_row_).end;
  if (!same_bias) hides_ = fill_bias(i) || hides_;
  bool sees_a_key = columns_ > 0 && !hides_;
  if (hides_) {
    float largest = kHidden;
    for (std::int64_t j = 0; j < columns_; ++j) {
      const float bias = at_.bias[j];
      row[j] = bias == kHidden ? kHidden : row[j] + bias;
      largest = std::max(largest, bias == bias ? bias : 0.0f);
    }
    sees_a_key = largest != kHidden;
  }
  if (mode == ScoresOutput::kBiased) write_scores(i, row, kHidden);
  float elsewhere = 0;
  if (sees_a_key) {
    run_.kernels.softmax_row(row, columns_);
  } else {
    empty_ |= std::uint64_t{1} << i;
    elsewhere = run_.spec.empty_row == EmptyRow::kNan ? kNan : 0.0f;
    std::fill(row, row + columns_, elsewhere);
  }
  if (mode == ScoresOutput::kProbabilities || mode == ScoresOutput::kMeanProbabilities) write_scores(i, row, elsewhere);
  if (!sees_a_key) std::fill(row, row + columns_, 0.0f);
  if (num_pieces_ > 1) scatter(i, row);
}

void OnednnBlock::softmax() {
  ProfileScope scope(run_.profiler, worker_, kZoneSoftmax);
  for (std::int64_t i = 0; i < place_.rows; ++i) softmax_row(i);
  std::int64_t rows = place_.rows;
  for (std::uint64_t bits = empty_; bits != 0; bits &= bits - 1) --rows;
  scope.add({.exps = rows * columns_, .bytes = bytes_of(2 * place_.rows * columns_)});
}

void OnednnBlock::weigh_values() {
  ProfileScope scope(run_.profiler, worker_, kZoneContext);
  const ConstTensorView& v = run_.args.value;
  const std::int64_t dv = run_.spec.value_head_dim;
  const std::int64_t count = place_.rows * dv;
  if (num_pieces_ == 0) std::fill(at_.context, at_.context + count, 0.0f);
  pieces([&](const KeyPiece& piece) {
    TileMatmulSpec spec{place_.rows, dv, piece.columns, piece.columns, v.strides[2], dv, false, piece.column > 0};
    Rows rows{head_data(v, place_.batch, kv_head_) + piece.key * v.strides[2], v.strides[2]};
    if (!in_place(v, piece, spec)) rows = dense_rows(v, piece, dv);
    spec.b_stride = rows.stride;
    run_.matmuls.run(spec, score_row(piece, 0), rows.data, at_.context, at_.matmul, at_.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * dv * pairs_,
             .flops_executed = 2 * dv * place_.rows * columns_,
             .bytes = bytes_of((place_.rows + columns_) * dv + place_.rows * columns_)});
  if (!hides_) return;
  // 0 · inf and 0 · NaN are NaN and stay NaN, so a finite result says that nothing leaked.
  if (!std::all_of(at_.context, at_.context + count, [](float x) { return std::isfinite(x); })) repair_hidden_values();
}

/// The weighted sum again, over the keys that are not hidden only.
void OnednnBlock::repair_hidden_values() {
  const ConstTensorView& v = run_.args.value;
  const std::int64_t dv = run_.spec.value_head_dim;
  for (std::int64_t i = 0; i < place_.rows; ++i) {
    float* context = at_.context + i * dv;
    std::fill(context, context + dv, 0.0f);
    fill_bias(i);
    pieces([&](const KeyPiece& piece) {
      const float* weights = score_row(piece, i);
      for (std::int64_t j = 0; j < piece.keys; ++j) {
        if (at_.bias[piece.column + j] == kHidden) continue;
        const float* row = head_data(v, place_.batch, kv_head_) + (piece.key + j) * v.strides[2];
        for (std::int64_t c = 0; c < dv; ++c) context[c] += weights[j] * row[c * v.strides[3]];
      }
    });
  }
}

void OnednnBlock::write_out() {
  const TensorView& out = run_.args.out;
  const std::int64_t dv = run_.spec.value_head_dim;
  float* to = out.as<float>() + place_.batch * out.strides[0] + place_.head * out.strides[1];
  for (std::int64_t i = 0; i < place_.rows; ++i) {
    float* row = to + (place_.begin + i) * out.strides[2];
    const float* context = at_.context + i * dv;
    const bool nan = (empty_ >> i & 1) != 0 && run_.spec.empty_row == EmptyRow::kNan;
    for (std::int64_t c = 0; c < dv; ++c) row[c * out.strides[3]] = nan ? kNan : context[c];
  }
}

}  // namespace headway
