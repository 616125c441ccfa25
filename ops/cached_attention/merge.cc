// Merging results of the same rows over two sets of keys. Weights come from the denominators' logs, which are f32 and
// so good to |lse| steps; splits of a call's own keys are folded more exactly, from maxima and sums (states.h).
#include <cmath>
#include <limits>

#include "headway/cached_attention.h"
#include "ops/base/layout.h"
#include "ops/base/numeric.h"
#include "ops/cached_attention/check_tensors.h"
#include "ops/cached_attention/spec.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

constexpr std::int64_t kRowsPerTask = 32;

struct Parts {
  const PartialAttention& a;
  const PartialAttention& b;
  const TensorView& out;
  const TensorView& log_sum_exp;
};

/// Element offset of row `index` of the axes before the last `inner` ones.
std::int64_t row_offset(const Dims& dims, const Dims& strides, int axes, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = axes - 1; axis >= 0; --axis) {
    offset += index % dims[axis] * strides[axis];
    index /= dims[axis];
  }
  return offset;
}

template <class Real>
void merge_row(const Parts& p, std::int64_t row) {
  const int axes = p.out.rank() - 1;
  const auto of = [&](const ConstTensorView& view) { return row_offset(view.dims, view.strides, axes, row); };
  const double first = p.a.log_sum_exp.as<float>()[of(p.a.log_sum_exp)];
  const double second = p.b.log_sum_exp.as<float>()[of(p.b.log_sum_exp)];
  const double highest = std::max(first, second);
  // Of two rows without keys neither has a weight.
  const bool empty = highest == -std::numeric_limits<double>::infinity();
  const double left = empty ? 0 : std::exp(first - highest);
  const double right = empty ? 0 : std::exp(second - highest);
  const double sum = left + right;
  const auto share_left = static_cast<float>(empty ? 0 : left / sum);
  const auto share_right = static_cast<float>(empty ? 0 : right / sum);
  const Real* const a = p.a.out.as<Real>() + of(p.a.out);
  const Real* const b = p.b.out.as<Real>() + of(p.b.out);
  Real* const to = p.out.as<Real>() + of(p.out);
  const std::int64_t stride_a = p.a.out.strides[axes], stride_b = p.b.out.strides[axes];
  for (std::int64_t c = 0; c < p.out.dims[axes]; ++c) {
    const float x = widen(a[c * stride_a]), y = widen(b[c * stride_b]);
    // A part without weight has no say, whatever it holds.
    const float of_x = left == 0 ? 0.0f : share_left * x;
    const float of_y = right == 0 ? 0.0f : share_right * y;
    to[c * p.out.strides[axes]] = convert<Real>(of_x + of_y);
  }
  const double log = empty ? highest : highest + std::log(sum);
  p.log_sum_exp.as<float>()[of(p.log_sum_exp)] = static_cast<float>(log);
}

void check_part(const char* out_argument, const char* log_argument, const PartialAttention& part, const TensorView& out,
                const Dims& rows) {
  check_tensor(out_argument, part.out, out.type, out.dims);
  check_tensor(log_argument, part.log_sum_exp, DataType::kF32, rows);
}

bool is_same(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.type == b.type && a.strides == b.strides;
}

void check_merge(const Parts& p) {
  require(p.out.present, "out is absent, expected f32, bf16 or f16 [.., columns]");
  require(is_row_type(p.out.type), "out is ", type_name(p.out.type), ", expected f32, bf16 or f16");
  require(p.out.rank() >= 1, "out has rank ", p.out.rank(), ", expected at least 1");
  check_tensor("out", p.out, p.out.type, p.out.dims);
  Dims rows;
  for (int axis = 0; axis + 1 < p.out.rank(); ++axis) rows.push_back(p.out.dims[axis]);
  check_tensor("log_sum_exp", p.log_sum_exp, DataType::kF32, rows);
  check_part("a.out", "a.log_sum_exp", p.a, p.out, rows);
  check_part("b.out", "b.log_sum_exp", p.b, p.out, rows);
  check_no_self_overlap("out", p.out);
  check_no_self_overlap("log_sum_exp", p.log_sum_exp);
  check_apart("log_sum_exp", p.log_sum_exp, "out", p.out);
  const struct {
    const char* out;
    const char* log;
    const PartialAttention& part;
  } parts[] = {{"a.out", "a.log_sum_exp", p.a}, {"b.out", "b.log_sum_exp", p.b}};
  for (const auto& [out, log, part] : parts) {
    if (!is_same(p.out, part.out)) check_apart("out", p.out, out, part.out);
    if (!is_same(p.log_sum_exp, part.log_sum_exp)) check_apart("log_sum_exp", p.log_sum_exp, log, part.log_sum_exp);
    check_apart("out", p.out, log, part.log_sum_exp);
    check_apart("log_sum_exp", p.log_sum_exp, out, part.out);
  }
}

}  // namespace

void merge(const PartialAttention& a, const PartialAttention& b, const TensorView& out, const TensorView& log_sum_exp,
           const Threads& threads) {
  const Parts parts{a, b, out, log_sum_exp};
  check_merge(parts);
  const std::int64_t rows = log_sum_exp.count();
  threads.parallel_for(ceil_div(rows, kRowsPerTask), [&](std::int64_t task, int) {
    const std::int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::int64_t row = task * kRowsPerTask; row < end; ++row) {
      if (out.type == DataType::kBF16) {
        merge_row<BFloat16>(parts, row);
      } else if (out.type == DataType::kF16) {
        merge_row<Float16>(parts, row);
      } else {
        merge_row<float>(parts, row);
      }
    }
  });
}

}  // namespace headway
