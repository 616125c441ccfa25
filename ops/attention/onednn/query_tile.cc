// The products of one query tile, and its end. A value row that is hidden and not finite is noticed in the result and
// left out of a second sum.
#include "ops/attention/onednn/query_tile.h"

#include <algorithm>

#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/zones.h"
#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "ops/base/split_scale.h"

namespace headway {
namespace {

/// Row `row` of the [S, width] of one head.
template <class Real>
const Real* row_of(const ConstTensorView& t, std::int64_t b, std::int64_t h, std::int64_t row) {
  return t.as<Real>() + b * t.strides[0] + h * t.strides[1] + row * t.strides[2];
}
const std::byte* row_bytes_of(const ConstTensorView& t, std::int64_t b, std::int64_t h, std::int64_t row) {
  return t.data +
         (b * t.strides[0] + h * t.strides[1] + row * t.strides[2]) * static_cast<std::int64_t>(size_bytes(t.type));
}

/// to[c] = scale · from[c · stride].
void scale_row(const Bf16Kernels&, const float* from, std::int64_t stride, float scale, std::int64_t n, float* to) {
  if (stride == 1) {
    for (std::int64_t c = 0; c < n; ++c) to[c] = from[c] * scale;
  } else {
    for (std::int64_t c = 0; c < n; ++c) to[c] = from[c * stride] * scale;
  }
}
void scale_row(const Bf16Kernels& kernels, const BFloat16* from, std::int64_t stride, float scale, std::int64_t n,
               BFloat16* to) {
  if (stride == 1) return kernels.scale(from, scale, to, n);
  for (std::int64_t c = 0; c < n; ++c) to[c] = to_bfloat16(widen(from[c * stride]) * scale);
}

/// Rows of a key block, contiguous, from rows of any strides; zeros beyond the last key.
template <class Real>
void copy_block(const Real* from, std::int64_t row_stride, std::int64_t column_stride, const OnednnKeyBlock& block,
                std::int64_t width, Real* to) {
  for (std::int64_t j = 0; j < block.columns; ++j, to += width) {
    const Real* row = from + j * row_stride;
    for (std::int64_t c = 0; c < width; ++c) to[c] = j < block.keys ? row[c * column_stride] : Real{};
  }
}

std::int64_t bytes_of_floats(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

}  // namespace

OnednnQueryTile::OnednnQueryTile(const OnednnRun& run, const OnednnTileRows& rows, const OnednnScratch& scratch,
                                 int worker)
    : tile_(run, rows, scratch, worker),
      softmax_(tile_),
      kv_head_(rows.head / (run.spec.num_heads / *run.spec.num_kv_heads)) {
  const KeyRange& always = tile_.always_visible;
  for (std::int64_t i = rows.begin; i < rows.begin + rows.count; ++i) {
    const KeyRange row = tile_.visibility.row(i);
    pairs_ += std::max<std::int64_t>(row.end - row.begin, 0) + always.end - always.begin;
  }
}

void OnednnQueryTile::compute() {
  scale_query();
  multiply_keys();
  softmax_.run(score_scale_);
  if (tile_.run.args.log_sum_exp) softmax_.write_log_sum_exps();
  multiply_values();
  write_out();
}

void OnednnQueryTile::scale_query() {
  ProfileScope scope(tile_.run.profiler, tile_.worker, kZonePack);
  const ConstTensorView& q = tile_.run.args.query;
  const std::int64_t d = tile_.run.spec.head_dim;
  const auto scale_rows = [&]<class Real>(Real, float scale) {
    for (std::int64_t i = 0; i < tile_.rows.count; ++i) {
      const Real* from = row_of<Real>(q, tile_.rows.batch, tile_.rows.head, tile_.rows.begin + i);
      scale_row(tile_.run.bf16, from, q.strides[3], scale, d, reinterpret_cast<Real*>(tile_.scratch.query) + i * d);
    }
  };
  if (tile_.bf16) {
    const SplitScale scale = split_scale(*tile_.run.spec.scale);
    scale_rows(BFloat16{}, scale.power);
    score_scale_ = scale.rest;
  } else {
    scale_rows(float{}, *tile_.run.spec.scale);
  }
  scope.add({.bytes = bytes_of_elements(2 * tile_.rows.count * d)});
}

std::int64_t OnednnQueryTile::bytes_of_elements(std::int64_t count) const {
  return count * static_cast<std::int64_t>(size_bytes(tile_.run.spec.type));
}

/// True when a product can read the rows where they are: unit strides, no padding columns, and a matmul for that
/// stride that needs no more scratch than the one for dense rows.
bool OnednnQueryTile::in_place(const ConstTensorView& t, const OnednnKeyBlock& block,
                               const TileMatmulSpec& spec) const {
  const std::int64_t width = t.dims[3];
  if (block.keys != block.columns || (t.strides[3] != 1 && width > 1) || t.strides[2] < width) return false;
  return tile_.run.matmuls.scratch_bytes(spec) <= tile_.scratch.matmul_bytes;
}

/// Rows of a block copied to scratch; zeros beyond the last key.
OnednnQueryTile::Rows OnednnQueryTile::copy_rows(const ConstTensorView& t, const OnednnKeyBlock& block,
                                                 std::int64_t width) const {
  const auto copy = [&]<class Real>(Real) {
    const Real* from = row_of<Real>(t, tile_.rows.batch, kv_head_, block.key);
    copy_block(from, t.strides[2], t.strides[3], block, width, reinterpret_cast<Real*>(tile_.scratch.keys));
  };
  if (tile_.bf16) {
    copy(BFloat16{});
  } else {
    copy(float{});
  }
  return {tile_.scratch.keys, width};
}

void OnednnQueryTile::multiply_keys() {
  ProfileScope scope(tile_.run.profiler, tile_.worker, kZoneScores);
  const ConstTensorView& k = tile_.run.args.key;
  const std::int64_t d = tile_.run.spec.head_dim;
  tile_.each_block([&](const OnednnKeyBlock& block) {
    TileMatmulSpec spec{tile_.rows.count, block.columns, d, d, k.strides[2], block.columns, true, false, k.type};
    Rows rows{row_bytes_of(k, tile_.rows.batch, kv_head_, block.key), k.strides[2]};
    if (!in_place(k, block, spec)) rows = copy_rows(k, block, d);
    spec.b_stride = rows.stride;
    tile_.run.matmuls.run(spec, tile_.scratch.query, rows.data, tile_.score_row(block, 0), tile_.scratch.matmul,
                          tile_.scratch.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * d * pairs_,
             .flops_executed = 2 * d * tile_.rows.count * tile_.columns,
             .bytes = bytes_of_elements((tile_.rows.count + tile_.columns) * d) +
                      bytes_of_floats(tile_.rows.count * tile_.columns)});
}

void OnednnQueryTile::multiply_values() {
  ProfileScope scope(tile_.run.profiler, tile_.worker, kZoneContext);
  const ConstTensorView& v = tile_.run.args.value;
  const std::int64_t dv = *tile_.run.spec.value_head_dim;
  const std::int64_t count = tile_.rows.count * dv;
  if (tile_.num_blocks == 0) std::fill(tile_.scratch.context, tile_.scratch.context + count, 0.0f);
  tile_.each_block([&](const OnednnKeyBlock& block) {
    TileMatmulSpec spec{tile_.rows.count, dv,    block.columns, block.columns, v.strides[2], dv, false,
                        block.column > 0, v.type};
    Rows rows{row_bytes_of(v, tile_.rows.batch, kv_head_, block.key), v.strides[2]};
    if (!in_place(v, block, spec)) rows = copy_rows(v, block, dv);
    spec.b_stride = rows.stride;
    const std::byte* probs = tile_.scratch.probs + bytes_of_elements(tile_.rows.count * block.column);
    tile_.run.matmuls.run(spec, probs, rows.data, tile_.scratch.context, tile_.scratch.matmul,
                          tile_.scratch.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * dv * pairs_,
             .flops_executed = 2 * dv * tile_.rows.count * tile_.columns,
             .bytes = bytes_of_elements((tile_.rows.count + tile_.columns) * dv + tile_.rows.count * tile_.columns)});
  // Without hidden keys, a finite value can only overflow where probabilities are not divided yet: in bf16.
  if (!softmax_.hides() && !tile_.bf16) return;
  // 0 · inf and 0 · NaN are NaN and stay NaN: a finite result has nothing of a hidden value in it.
  if (!all_finite(tile_.scratch.context, count)) {
    tile_.bf16 ? recompute_nonfinite_rows<BFloat16>() : recompute_nonfinite_rows<float>();
  }
}

/// The weighted sum again, over the visible keys only and with probabilities that add up to 1. Not by the reference:
/// all rows of the tile take part, and sums stay f32.
template <class Real>
void OnednnQueryTile::recompute_nonfinite_rows() {
  recomputed_ = true;
  const ConstTensorView& v = tile_.run.args.value;
  const std::int64_t dv = *tile_.run.spec.value_head_dim;
  for (std::int64_t i = 0; i < tile_.rows.count; ++i) {
    float* context = tile_.scratch.context + i * dv;
    std::fill(context, context + dv, 0.0f);
    tile_.fill_bias(i);
    const float reciprocal = 1 / softmax_.divisor(i);
    tile_.each_block([&](const OnednnKeyBlock& block) {
      const Real* probs =
          reinterpret_cast<const Real*>(tile_.scratch.probs) + (tile_.score_row(block, i) - tile_.scratch.scores);
      for (std::int64_t j = 0; j < block.keys; ++j) {
        if (tile_.scratch.bias[block.column + j] == kHiddenScore) continue;
        const Real* row = row_of<Real>(v, tile_.rows.batch, kv_head_, block.key + j);
        const float prob = reciprocal * widen(probs[j]);
        for (std::int64_t c = 0; c < dv; ++c) context[c] += prob * widen(row[c * v.strides[3]]);
      }
    });
  }
}

void OnednnQueryTile::write_out() {
  const TensorView& out = tile_.run.args.out;
  const std::int64_t dv = *tile_.run.spec.value_head_dim;
  const std::int64_t at =
      tile_.rows.batch * out.strides[0] + tile_.rows.head * out.strides[1] + tile_.rows.begin * out.strides[2];
  for (std::int64_t i = 0; i < tile_.rows.count; ++i) {
    float* context = tile_.scratch.context + i * dv;
    if (softmax_.is_empty(i)) {
      const float empty = empty_row_value(tile_.run.spec);
      if (empty != 0) std::fill(context, context + dv, empty);  // zero is there already
    }
    const float divisor = recomputed_ ? 1.0f : softmax_.divisor(i);
    if (divisor != 1) {
      for (std::int64_t c = 0; c < dv; ++c) context[c] /= divisor;
    }
    const std::int64_t row = at + i * out.strides[2];
    if (tile_.bf16 && out.strides[3] == 1) {
      tile_.run.bf16.narrow(context, out.as<BFloat16>() + row, dv);
    } else if (tile_.bf16) {
      BFloat16* to = out.as<BFloat16>() + row;
      for (std::int64_t c = 0; c < dv; ++c) to[c * out.strides[3]] = to_bfloat16(context[c]);
    } else {
      float* to = out.as<float>() + row;
      for (std::int64_t c = 0; c < dv; ++c) to[c * out.strides[3]] = context[c];
    }
  }
}

}  // namespace headway
