// Two ways: with everything that a spec may ask for, row by row; and straight from scores to bf16 probabilities.
#include "ops/attention/onednn/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/epilogue/log_sum_exp.h"
#include "ops/attention/epilogue/score_output.h"
#include "ops/attention/zones.h"
#include "ops/base/hidden_score.h"

namespace headway {

OnednnSoftmax::OnednnSoftmax(const OnednnTile& tile) : tile_(tile) { std::fill_n(divisor_, kOnednnTileRows, 1.0f); }

void OnednnSoftmax::gather(std::int64_t i, float* row) const {
  tile_.each_block([&](const OnednnKeyBlock& block) {
    std::memcpy(row + block.column, tile_.score_row(block, i), sizeof(float) * static_cast<std::size_t>(block.columns));
  });
}

/// A finished row of probabilities to where the second product reads it.
void OnednnSoftmax::store_probs(std::int64_t i, const float* row) const {
  const OnednnScratch& scratch = tile_.scratch;
  if (tile_.bf16) {
    auto* const probs = reinterpret_cast<BFloat16*>(scratch.probs);
    tile_.each_block([&](const OnednnKeyBlock& block) {
      const std::int64_t at = tile_.score_row(block, i) - scratch.scores;
      tile_.run.bf16.narrow(row + block.column, probs + at, block.columns);
    });
  } else if (tile_.num_blocks > 1) {
    tile_.each_block([&](const OnednnKeyBlock& block) {
      std::memcpy(tile_.score_row(block, i), row + block.column,
                  sizeof(float) * static_cast<std::size_t>(block.columns));
    });
  }
}

/// One row of args.scores from a row of all key blocks; keys that were not computed get `elsewhere`.
void OnednnSoftmax::write_scores(std::int64_t i, const float* row, float elsewhere) const {
  const ScoreOutput output(tile_.run.spec, tile_.run.args);
  float* const to = output.row(tile_.rows.batch, tile_.rows.head, tile_.rows.begin + i);
  // A mean has the sums of the heads before this one, to which only NaN is not neutral.
  if (!has_mean_probs(tile_.run.spec) || std::isnan(elsewhere)) output.fill(to, elsewhere);
  tile_.each_block([&](const OnednnKeyBlock& block) { output.write(to, block.key, row + block.column, block.keys); });
}

/// Brings the bias of row i to scratch.bias, unless it is there already. Returns whether rows hide anything.
bool OnednnSoftmax::adds_bias(std::int64_t i) {
  const Visibility& visibility = tile_.visibility;
  const std::int64_t query = tile_.rows.begin + i;
  const std::int64_t before = tile_.rows.begin + bias_row_;
  const bool same_bias = bias_row_ >= 0 && tile_.run.bias.same_for_all_queries() &&
                         visibility.row(query).begin == visibility.row(before).begin &&
                         visibility.row(query).end == visibility.row(before).end;
  if (same_bias) return hides_;
  hides_ = tile_.fill_bias(i) || hides_;
  bias_row_ = i;
  return hides_;
}

void OnednnSoftmax::row(std::int64_t i) {
  const AttentionSpec& spec = tile_.run.spec;
  const SoftmaxKernels& kernels = tile_.run.kernels;
  const OnednnScratch& scratch = tile_.scratch;
  const std::int64_t columns = tile_.columns;
  const OnednnKeyBlock whole{0, 0, columns, 0};
  float* row = tile_.num_blocks == 1 ? tile_.score_row(whole, i) : scratch.row;
  if (tile_.num_blocks > 1) gather(i, row);
  if (score_scale_ != 1) {
    for (std::int64_t j = 0; j < columns; ++j) row[j] *= score_scale_;
  }
  if (spec.scores_output == ScoresOutput::kScaled) write_scores(i, row, 0);
  if (spec.softcap > 0) kernels.softcap_row(row, spec.softcap, columns);
  if (spec.scores_output == ScoresOutput::kSoftcapped) write_scores(i, row, 0);

  const bool biased = adds_bias(i);
  bool sees_a_key = columns > 0 && !biased;
  if (biased) {
    float largest = kHiddenScore;
    for (std::int64_t j = 0; j < columns; ++j) {
      const float bias = scratch.bias[j];
      row[j] = bias == kHiddenScore ? kHiddenScore : row[j] + bias;
      largest = std::max(largest, bias == bias ? bias : 0.0f);
    }
    sees_a_key = largest != kHiddenScore;
  }
  if (spec.scores_output == ScoresOutput::kBiased) write_scores(i, row, kHiddenScore);
  float elsewhere = 0;
  if (sees_a_key) {
    state_[i] = kernels.softmax_row(row, columns);
    // A NaN in a visible score makes the sum NaN, and so all that is divided by it: 0 is left for hidden keys.
    const bool nan = biased && std::isnan(row[0]);
    for (std::int64_t j = 0; nan && j < columns; ++j) {
      if (scratch.bias[j] == kHiddenScore) row[j] = 0;
    }
  } else {
    empty_ |= std::uint64_t{1} << i;
    elsewhere = empty_row_value(spec);
    std::fill(row, row + columns, elsewhere);
  }
  if (has_probs(spec)) write_scores(i, row, elsewhere);
  if (!sees_a_key) std::fill(row, row + columns, 0.0f);
  store_probs(i, row);
}

/// bf16 without user masks: straight from scores to probabilities, in two passes over what the row sees. They are not
/// divided by their sum; the context is.
bool OnednnSoftmax::is_direct() const {
  const AttentionSpec& spec = tile_.run.spec;
  return tile_.bf16 && !tile_.run.bias.any() && spec.softcap == 0 && spec.scores_output == ScoresOutput::kNone;
}

void OnednnSoftmax::row_direct(std::int64_t i) {
  const SoftmaxKernels& kernels = tile_.run.kernels;
  const KeyRange visible = tile_.visibility.row(tile_.rows.begin + i);
  float largest = kLowestScore;
  bool sees_a_key = false;
  tile_.each_block([&](const OnednnKeyBlock& block) {
    const OnednnTile::Seen keys = tile_.seen(block, visible);
    const float* row = tile_.score_row(block, i);
    largest = kernels.row_max(row + keys.begin, keys.end - keys.begin, largest);
    largest = kernels.row_max(row + keys.tail, block.keys - keys.tail, largest);
    sees_a_key = sees_a_key || keys.begin < keys.end || keys.tail < block.keys;
    hides_ = hides_ || !keys.all(block);
  });
  float sum = 0;
  tile_.each_block([&](const OnednnKeyBlock& block) {
    const OnednnTile::Seen keys = tile_.seen(block, visible);
    const float* row = tile_.score_row(block, i);
    BFloat16* to = reinterpret_cast<BFloat16*>(tile_.scratch.probs) + (row - tile_.scratch.scores);
    const auto add_exps = [&](std::int64_t begin, std::int64_t end) {
      sum += kernels.exp_to_bf16(row + begin, end - begin, score_scale_, largest, to + begin);
    };
    std::fill(to, to + keys.begin, BFloat16{});
    add_exps(keys.begin, keys.end);
    std::fill(to + keys.end, to + keys.tail, BFloat16{});
    add_exps(keys.tail, block.keys);
    std::fill(to + block.keys, to + block.columns, BFloat16{});
  });
  if (sees_a_key) {
    divisor_[i] = sum;
    state_[i] = {.max = score_scale_ * largest, .sum = sum};
  } else {
    empty_ |= std::uint64_t{1} << i;
  }
}

void OnednnSoftmax::write_log_sum_exps() const {
  const std::int64_t count = tile_.rows.count;
  float maxima[kOnednnTileRows], values[kOnednnTileRows];
  for (std::int64_t i = 0; i < count; ++i) {
    maxima[i] = is_empty(i) ? 0 : state_[i].max;
    values[i] = is_empty(i) ? 0 : state_[i].sum;
  }
  tile_.run.kernels.log_sum_exp(maxima, values, values, count);
  write_log_sum_exp(tile_.run.args.log_sum_exp, tile_.rows.batch, tile_.rows.head, tile_.rows.begin, count, values);
}

void OnednnSoftmax::run(float score_scale) {
  ProfileScope scope(tile_.run.profiler, tile_.worker, kZoneSoftmax);
  score_scale_ = score_scale;
  const bool direct = is_direct();
  for (std::int64_t i = 0; i < tile_.rows.count; ++i) direct ? row_direct(i) : row(i);
  std::int64_t live = tile_.rows.count;
  for (std::uint64_t bits = empty_; bits != 0; bits &= bits - 1) --live;
  scope.add({.exps = live * tile_.columns,
             .bytes = 2 * tile_.rows.count * tile_.columns * static_cast<std::int64_t>(sizeof(float))});
}

}  // namespace headway
