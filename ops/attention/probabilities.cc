// A tile of probabilities: scores of a few rows against a block of keys, masks, exp. Every key is read once for eight
// rows. The kernels are those of few_queries, whose rows may be anywhere in memory.
#include "headway/attention_probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/bias.h"
#include "ops/attention/check_args.h"
#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/spec.h"
#include "ops/attention/visibility.h"
#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "ops/reference/reference_attention.h"
#include "ops/simd/few_queries.h"
#include "ops/simd/softmax.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kKeys = 256;       // of a block
constexpr std::int64_t kPackedKeys = 32;  // of a block whose innermost stride is not 1

void multiply(const FewQueriesKernels& kernels, const FewScores<float>& tile) { kernels.score(tile); }
void multiply(const FewQueriesKernels& kernels, const FewScores<BFloat16>& tile) { kernels.score_bf16(tile); }

/// The rows of one tile, up to kRows at a time. `Real` is the element type of query and key.
template <class Real>
class TileOfProbs {
 public:
  TileOfProbs(const AttentionSpec& spec, const AttentionArgs& args, const ProbabilityTile& tile, const TensorView& to)
      : spec_(spec),
        args_(args),
        tile_(tile),
        to_(to),
        bias_(spec, args),
        visibility_(spec, args, tile.batch),
        few_(few_queries_kernels()),
        row_kernels_(softmax_kernels()),
        kv_head_(tile.head / (spec.num_heads / *spec.num_kv_heads)),
        queries_(static_cast<std::size_t>(kRows * spec.head_dim)),
        packed_(args.key.strides[3] == 1 ? 0 : static_cast<std::size_t>(kPackedKeys * spec.head_dim)) {}

  void run() {
    for (std::int64_t i = tile_.query_begin; i < tile_.query_end; i += kRows) {
      row_ = i;
      rows_ = std::min(kRows, tile_.query_end - i);
      load_queries();
      // Outside of the hull no row sees a key, and none is read.
      const KeyRange hull = within(visibility_.any(i, i + rows_));
      const KeyRange tail = within({visibility_.tail_begin(), visibility_.tail_end()});
      hide(tile_.key_begin, hull.begin);
      each_block(hull, false);
      hide(hull.end, tail.begin);
      each_block(tail, true);
      hide(tail.end, tile_.key_end);
    }
  }

 private:
  /// The part of `keys` in the tile; an empty one lies at its nearer end.
  KeyRange within(const KeyRange& keys) const {
    const std::int64_t begin = std::clamp(keys.begin, tile_.key_begin, tile_.key_end);
    return {begin, std::clamp(keys.end, begin, tile_.key_end)};
  }

  void load_queries() {
    const Dims& s = args_.query.strides;
    const Real* from = args_.query.as<Real>() + tile_.batch * s[0] + tile_.head * s[1] + row_ * s[2];
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < spec_.head_dim; ++c) {
        queries_[static_cast<std::size_t>(r * spec_.head_dim + c)] = *spec_.scale * widen(from[r * s[2] + c * s[3]]);
      }
    }
  }

  float* element(std::int64_t r, std::int64_t key) const {
    return to_.as<float>() + (row_ + r - tile_.query_begin) * to_.strides[0] + (key - tile_.key_begin) * to_.strides[1];
  }

  float log_sum_exp(std::int64_t r) const {
    const Dims& s = args_.log_sum_exp.strides;
    return args_.log_sum_exp.as<float>()[tile_.batch * s[0] + tile_.head * s[1] + (row_ + r) * s[2]];
  }

  /// What a hidden key has: 0, except in an empty row. Only a row without a sum can be one.
  float hidden_value(std::int64_t r) const {
    if (log_sum_exp(r) != kHiddenScore) return 0;
    for (std::int64_t j = 0; j < spec_.key_len; ++j) {
      if (reference_bias(spec_, args_, {tile_.batch, tile_.head, row_ + r, j}) != kHiddenScore) return 0;
    }
    return empty_row_value(spec_);
  }

  void hide(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t r = 0; r < rows_ && begin < end; ++r) {
      const float value = hidden_value(r);
      for (std::int64_t j = begin; j < end; ++j) *element(r, j) = value;
    }
  }

  void each_block(const KeyRange& keys, bool always_visible) {
    const std::int64_t step = packed_.empty() ? kKeys : kPackedKeys;
    for (std::int64_t key = keys.begin; key < keys.end; key += step) {
      const std::int64_t count = std::min(step, keys.end - key);
      score(key, count);
      for (std::int64_t r = 0; r < rows_; ++r) finish_row(r, key, count, always_visible);
    }
  }

  /// scores_[r][j] of `count` keys: four streams of neighbouring keys, then up to three keys by themselves.
  void score(std::int64_t key, std::int64_t count) {
    const Dims& s = args_.key.strides;
    const Real* from = args_.key.as<Real>() + tile_.batch * s[0] + kv_head_ * s[1] + key * s[2];
    std::int64_t stride = s[2];
    if (!packed_.empty()) {
      for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t c = 0; c < spec_.head_dim; ++c) {
          packed_[static_cast<std::size_t>(j * spec_.head_dim + c)] = from[j * s[2] + c * s[3]];
        }
      }
      from = packed_.data();
      stride = spec_.head_dim;
    }
    const std::int64_t steps = count / kKeyStreams;
    FewScores<Real> block{.key = {},
                          .key_stride = stride,
                          .steps = steps,
                          .queries = queries_.data(),
                          .rows = rows_,
                          .depth = spec_.head_dim,
                          .scores = scores_,
                          .row_stride = kKeys};
    for (int stream = 0; stream < kKeyStreams; ++stream) block.key[stream] = from + stream * steps * stride;
    if (steps > 0) multiply(few_, block);
    const std::int64_t done = steps * kKeyStreams;
    if (done == count) return;
    float rest[kRows * kKeyStreams];
    for (int stream = 0; stream < kKeyStreams; ++stream) {
      block.key[stream] = from + std::min(done + stream, count - 1) * stride;
    }
    block.steps = 1;
    block.scores = rest;
    block.row_stride = kKeyStreams;
    multiply(few_, block);
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::copy_n(rest + r * kKeyStreams, count - done, scores_ + r * kKeys + done);
    }
  }

  /// Scores to probabilities, written out. `bias_row_` becomes −inf where the key is hidden.
  void finish_row(std::int64_t r, std::int64_t key, std::int64_t count, bool always_visible) {
    float* const x = scores_ + r * kKeys;
    if (spec_.softcap > 0) row_kernels_.softcap_row(x, spec_.softcap, count);
    std::fill_n(bias_row_, count, 0.0f);
    if (!always_visible) {
      if (bias_.any()) bias_.fill(tile_.batch, tile_.head, row_ + r, 1, key, count, bias_row_, count);
      const KeyRange seen = visibility_.row(row_ + r);
      const std::int64_t begin = std::clamp<std::int64_t>(seen.begin - key, 0, count);
      const std::int64_t end = std::clamp<std::int64_t>(seen.end - key, begin, count);
      std::fill(bias_row_, bias_row_ + begin, kHiddenScore);
      std::fill(bias_row_ + end, bias_row_ + count, kHiddenScore);
    }
    for (std::int64_t j = 0; j < count; ++j) x[j] = bias_row_[j] == kHiddenScore ? kHiddenScore : x[j] + bias_row_[j];
    const float sum = log_sum_exp(r);
    row_kernels_.normalize_row(x, count, sum, 1.0f);
    if (!std::isfinite(sum)) {
      const float hidden = hidden_value(r);
      for (std::int64_t j = 0; j < count; ++j) {
        x[j] = bias_row_[j] == kHiddenScore ? hidden : std::numeric_limits<float>::quiet_NaN();
      }
    }
    float* const to = element(r, key);
    for (std::int64_t j = 0; j < count; ++j) to[j * to_.strides[1]] = x[j];
  }

  const AttentionSpec& spec_;
  const AttentionArgs& args_;
  const ProbabilityTile& tile_;
  const TensorView& to_;
  BiasSource bias_;
  Visibility visibility_;
  FewQueriesKernels few_;
  SoftmaxKernels row_kernels_;
  std::int64_t kv_head_;
  std::vector<float> queries_;  // [kRows, D], scaled
  std::vector<Real> packed_;    // [kPackedKeys, D]
  std::int64_t row_ = 0;        // first query of the rows at hand
  std::int64_t rows_ = 0;
  float scores_[kRows * kKeys];
  float bias_row_[kKeys];
};

void check_range(const char* what, std::int64_t begin, std::int64_t end, std::int64_t size) {
  require(begin >= 0 && begin <= end && end <= size, "tile has ", what, " [", begin, ", ", end,
          "), expected within [0, ", size, ")");
}

void check_index(const char* what, std::int64_t index, std::int64_t size) {
  require(index >= 0 && index < size, "tile.", what, " is ", index, ", expected 0 to ", size - 1);
}

}  // namespace

void attention_probabilities(const AttentionSpec& given, const AttentionArgs& args, const ProbabilityTile& tile,
                             const TensorView& to) try {
  const AttentionSpec spec = complete_spec(given);
  check_score_inputs(spec, args);
  check_log_sum_exp(spec, args.log_sum_exp);
  check_index("batch", tile.batch, spec.batch);
  check_index("head", tile.head, spec.num_heads);
  check_range("queries", tile.query_begin, tile.query_end, spec.query_len);
  check_range("keys", tile.key_begin, tile.key_end, spec.key_len);
  const Dims dims{tile.query_end - tile.query_begin, tile.key_end - tile.key_begin};
  require(to.present, "to is absent, expected f32 ", dims);
  require(to.type == DataType::kF32, "to is ", type_name(to.type), ", expected f32");
  require(to.dims == dims, "to has dims ", to.dims, ", expected ", dims);
  require(to.data != nullptr || to.count() == 0, "to is null, expected ", dims, " elements");
  check_apart("to", to, "query", args.query);
  check_apart("to", to, "key", args.key);
  check_apart("to", to, "mask", args.mask);
  check_apart("to", to, "key_mask", args.key_mask);
  check_apart("to", to, "log_sum_exp", args.log_sum_exp);
  check_no_self_overlap("to", to);
  if (spec.type == DataType::kBF16) {
    TileOfProbs<BFloat16>(spec, args, tile, to).run();
  } else {
    TileOfProbs<float>(spec, args, tile, to).run();
  }
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
