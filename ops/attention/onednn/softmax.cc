// The softmax of a block: rows of scores to rows of weights, masks and scores outputs on the way. Hidden keys get
// weight 0 by selection.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/attention/implementation.h"
#include "ops/attention/onednn/block.h"

namespace headway {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

/// Which keys of a piece a row sees by the integer rules, counted from the piece's first: [begin, end) and from `tail`.
OnednnBlock::Seen OnednnBlock::seen(const KeyPiece& piece, const KeyRange& visible) const {
  const std::int64_t tail = std::clamp(tail_.begin - piece.key, std::int64_t{0}, piece.keys);
  const std::int64_t begin = std::clamp(visible.begin - piece.key, std::int64_t{0}, tail);
  return {begin, std::clamp(visible.end - piece.key, begin, tail), tail};
}

/// Bias of row i over all columns into at_.bias: user masks, then −inf where integers hide and in padding columns.
/// Returns whether anything is hidden.
bool OnednnBlock::fill_bias(std::int64_t i) {
  const KeyRange visible = visibility_.row(place_.begin + i);
  bool padded = false;
  pieces([&](const KeyPiece& piece) {
    float* bias = at_.bias + piece.column;
    run_.bias.fill(place_.batch, place_.head, place_.begin + i, 1, piece.key, piece.keys, bias, piece.keys);
    const Seen keys = seen(piece, visible);
    std::fill(bias, bias + keys.begin, kHidden);
    std::fill(bias + keys.end, bias + keys.tail, kHidden);
    std::fill(bias + piece.keys, bias + piece.columns, kHidden);
    padded = padded || !keys.all(piece);
  });
  bias_row_ = i;
  return padded || run_.bias.any();
}

void OnednnBlock::gather(std::int64_t i, float* row) const {
  pieces([&](const KeyPiece& piece) {
    std::memcpy(row + piece.column, score_row(piece, i), sizeof(float) * static_cast<std::size_t>(piece.columns));
  });
}

/// A finished row of weights to where the second product reads it.
void OnednnBlock::place_weights(std::int64_t i, const float* row) const {
  if (bf16_) {
    auto* const weights = reinterpret_cast<BFloat16*>(at_.weights);
    pieces([&](const KeyPiece& piece) {
      const std::int64_t at = score_row(piece, i) - at_.scores;
      run_.bf16.narrow(row + piece.column, weights + at, piece.columns);
    });
  } else if (num_pieces_ > 1) {
    pieces([&](const KeyPiece& piece) {
      std::memcpy(score_row(piece, i), row + piece.column, sizeof(float) * static_cast<std::size_t>(piece.columns));
    });
  }
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
  if (rest_of_scale_ != 1) {
    for (std::int64_t j = 0; j < columns_; ++j) row[j] *= rest_of_scale_;
  }
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
  place_weights(i, row);
}

/// bf16 without masks of numbers: straight from scores to weights, in two passes over what the row sees. The weights
/// are not divided by their sum; the context is.
bool OnednnBlock::softmax_is_direct() const {
  return bf16_ && !run_.bias.any() && run_.spec.softcap == 0 && run_.spec.scores_output == ScoresOutput::kNone;
}

void OnednnBlock::softmax_row_direct(std::int64_t i) {
  const KeyRange visible = visibility_.row(place_.begin + i);
  float largest = std::numeric_limits<float>::lowest();
  bool sees_a_key = false;
  pieces([&](const KeyPiece& piece) {
    const Seen keys = seen(piece, visible);
    const float* row = score_row(piece, i);
    largest = run_.kernels.row_max(row + keys.begin, keys.end - keys.begin, largest);
    largest = run_.kernels.row_max(row + keys.tail, piece.keys - keys.tail, largest);
    sees_a_key = sees_a_key || keys.begin < keys.end || keys.tail < piece.keys;
    hides_ = hides_ || !keys.all(piece);
  });
  float sum = 0;
  pieces([&](const KeyPiece& piece) {
    const Seen keys = seen(piece, visible);
    const float* row = score_row(piece, i);
    BFloat16* to = reinterpret_cast<BFloat16*>(at_.weights) + (row - at_.scores);
    const auto weigh = [&](std::int64_t begin, std::int64_t end) {
      sum += run_.kernels.exp_to_bf16(row + begin, end - begin, rest_of_scale_, largest, to + begin);
    };
    std::fill(to, to + keys.begin, BFloat16{});
    weigh(keys.begin, keys.end);
    std::fill(to + keys.end, to + keys.tail, BFloat16{});
    weigh(keys.tail, piece.keys);
    std::fill(to + piece.keys, to + piece.columns, BFloat16{});
  });
  if (sees_a_key) {
    sum_[i] = sum;
  } else {
    empty_ |= std::uint64_t{1} << i;
  }
}

void OnednnBlock::softmax() {
  ProfileScope scope(run_.profiler, worker_, kZoneSoftmax);
  const bool direct = softmax_is_direct();
  for (std::int64_t i = 0; i < place_.rows; ++i) direct ? softmax_row_direct(i) : softmax_row(i);
  std::int64_t rows = place_.rows;
  for (std::uint64_t bits = empty_; bits != 0; bits &= bits - 1) --rows;
  scope.add({.exps = rows * columns_, .bytes = 2 * place_.rows * columns_ * static_cast<std::int64_t>(sizeof(float))});
}

}  // namespace headway
