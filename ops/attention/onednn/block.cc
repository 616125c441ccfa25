// The steps of one block, in order. Hidden keys get weight 0 by selection; a value row that is hidden and not finite is
// noticed in the result and left out of a second sum.
#include "ops/attention/onednn/block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/implementation.h"
#include "ops/base/numeric.h"
#include "ops/base/split_scale.h"

namespace headway {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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

/// Rows of a piece side by side from rows of any strides, zeros beyond the last key.
template <class Real>
void copy_rows(const Real* from, std::int64_t row_stride, std::int64_t column_stride, const KeyPiece& piece,
               std::int64_t width, Real* to) {
  for (std::int64_t j = 0; j < piece.columns; ++j, to += width) {
    const Real* row = from + j * row_stride;
    for (std::int64_t c = 0; c < width; ++c) to[c] = j < piece.keys ? row[c * column_stride] : Real{};
  }
}

bool writes_all_keys(ScoresOutput mode) { return mode == ScoresOutput::kScaled || mode == ScoresOutput::kSoftcapped; }

std::int64_t bytes_of_floats(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

}  // namespace

OnednnBlock::OnednnBlock(const OnednnRun& run, const Place& place, const OnednnBlockScratch& scratch, int worker)
    : run_(run), place_(place), at_(scratch), worker_(worker), visibility_(run.spec, run.args, place.batch) {
  range_ = visibility_.any(place.begin, place.begin + place.rows);
  tail_ = {visibility_.tail_begin(), visibility_.tail_end()};
  if (writes_all_keys(run.spec.scores_output)) range_ = {0, visibility_.tail_begin()};
  kv_head_ = place.head / (run.spec.num_heads / *run.spec.num_kv_heads);
  bf16_ = run.spec.type == DataType::kBF16;
  std::fill_n(sum_, kBlockRows, 1.0f);
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
  const auto scale_rows = [&]<class Real>(Real, float scale) {
    for (std::int64_t i = 0; i < place_.rows; ++i) {
      const Real* from = row_of<Real>(q, place_.batch, place_.head, place_.begin + i);
      scale_row(run_.bf16, from, q.strides[3], scale, d, reinterpret_cast<Real*>(at_.query) + i * d);
    }
  };
  if (bf16_) {
    const SplitScale scale = split_scale(*run_.spec.scale);
    scale_rows(BFloat16{}, scale.power);
    rest_of_scale_ = scale.rest;
  } else {
    scale_rows(float{}, *run_.spec.scale);
  }
  scope.add({.bytes = bytes_of_elements(2 * place_.rows * d)});
}

std::int64_t OnednnBlock::bytes_of_elements(std::int64_t count) const {
  return count * static_cast<std::int64_t>(size_bytes(run_.spec.type));
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
  const auto copy = [&]<class Real>(Real) {
    const Real* from = row_of<Real>(t, place_.batch, kv_head_, piece.key);
    copy_rows(from, t.strides[2], t.strides[3], piece, width, reinterpret_cast<Real*>(at_.keys));
  };
  if (bf16_) {
    copy(BFloat16{});
  } else {
    copy(float{});
  }
  return {at_.keys, width};
}

void OnednnBlock::score() {
  ProfileScope scope(run_.profiler, worker_, kZoneScores);
  const ConstTensorView& k = run_.args.key;
  const std::int64_t d = run_.spec.head_dim;
  pieces([&](const KeyPiece& piece) {
    TileMatmulSpec spec{place_.rows, piece.columns, d, d, k.strides[2], piece.columns, true, false, k.type};
    Rows rows{row_bytes_of(k, place_.batch, kv_head_, piece.key), k.strides[2]};
    if (!in_place(k, piece, spec)) rows = dense_rows(k, piece, d);
    spec.b_stride = rows.stride;
    run_.matmuls.run(spec, at_.query, rows.data, score_row(piece, 0), at_.matmul, at_.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * d * pairs_,
             .flops_executed = 2 * d * place_.rows * columns_,
             .bytes = bytes_of_elements((place_.rows + columns_) * d) + bytes_of_floats(place_.rows * columns_)});
}

void OnednnBlock::weigh_values() {
  ProfileScope scope(run_.profiler, worker_, kZoneContext);
  const ConstTensorView& v = run_.args.value;
  const std::int64_t dv = *run_.spec.value_head_dim;
  const std::int64_t count = place_.rows * dv;
  if (num_pieces_ == 0) std::fill(at_.context, at_.context + count, 0.0f);
  pieces([&](const KeyPiece& piece) {
    TileMatmulSpec spec{place_.rows, dv,    piece.columns,    piece.columns, v.strides[2],
                        dv,          false, piece.column > 0, v.type};
    Rows rows{row_bytes_of(v, place_.batch, kv_head_, piece.key), v.strides[2]};
    if (!in_place(v, piece, spec)) rows = dense_rows(v, piece, dv);
    spec.b_stride = rows.stride;
    const std::byte* weights = at_.weights + bytes_of_elements(place_.rows * piece.column);
    run_.matmuls.run(spec, weights, rows.data, at_.context, at_.matmul, at_.matmul_bytes);
  });
  scope.add({.flops_nominal = 2 * dv * pairs_,
             .flops_executed = 2 * dv * place_.rows * columns_,
             .bytes = bytes_of_elements((place_.rows + columns_) * dv + place_.rows * columns_)});
  // Without hidden keys only weights that are not divided yet can make too much of finite values, which are bf16's.
  if (!hides_ && !bf16_) return;
  // 0 · inf and 0 · NaN are NaN and stay NaN, so a finite result says that nothing leaked.
  if (!all_finite(at_.context, count)) {
    bf16_ ? recompute_nonfinite_rows<BFloat16>() : recompute_nonfinite_rows<float>();
  }
}

/// The weighted sum again, over the keys that are not hidden only and with weights that add up to 1.
template <class Real>
void OnednnBlock::recompute_nonfinite_rows() {
  const ConstTensorView& v = run_.args.value;
  const std::int64_t dv = *run_.spec.value_head_dim;
  for (std::int64_t i = 0; i < place_.rows; ++i) {
    float* context = at_.context + i * dv;
    std::fill(context, context + dv, 0.0f);
    fill_bias(i);
    const float reciprocal = 1 / sum_[i];
    pieces([&](const KeyPiece& piece) {
      const Real* weights = reinterpret_cast<const Real*>(at_.weights) + (score_row(piece, i) - at_.scores);
      for (std::int64_t j = 0; j < piece.keys; ++j) {
        if (at_.bias[piece.column + j] == kHidden) continue;
        const Real* row = row_of<Real>(v, place_.batch, kv_head_, piece.key + j);
        const float weight = reciprocal * widen(weights[j]);
        for (std::int64_t c = 0; c < dv; ++c) context[c] += weight * widen(row[c * v.strides[3]]);
      }
    });
    sum_[i] = 1;
  }
}

void OnednnBlock::write_out() {
  const TensorView& out = run_.args.out;
  const std::int64_t dv = *run_.spec.value_head_dim;
  const std::int64_t at = place_.batch * out.strides[0] + place_.head * out.strides[1] + place_.begin * out.strides[2];
  for (std::int64_t i = 0; i < place_.rows; ++i) {
    float* context = at_.context + i * dv;
    if ((empty_ >> i & 1) != 0 && run_.spec.empty_row == EmptyRow::kNan) std::fill(context, context + dv, kNan);
    if (sum_[i] != 1) {
      for (std::int64_t c = 0; c < dv; ++c) context[c] /= sum_[i];
    }
    const std::int64_t row = at + i * out.strides[2];
    if (bf16_ && out.strides[3] == 1) {
      run_.bf16.narrow(context, out.as<BFloat16>() + row, dv);
    } else if (bf16_) {
      BFloat16* to = out.as<BFloat16>() + row;
      for (std::int64_t c = 0; c < dv; ++c) to[c * out.strides[3]] = to_bfloat16(context[c]);
    } else {
      float* to = out.as<float>() + row;
      for (std::int64_t c = 0; c < dv; ++c) to[c * out.strides[3]] = context[c];
    }
  }
}

}  // namespace headway
